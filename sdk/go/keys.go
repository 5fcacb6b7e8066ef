package catraca

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Key adds attributes of a request to the subject of its check.
type Key func(request *http.Request, subject Subject) error

// PeerAddress adds the address of the connection as "ip".
func PeerAddress() Key {
	return func(request *http.Request, subject Subject) error {
		peer, err := peerOf(request)
		if err == nil {
			subject["ip"] = peer.String()
		}
		return err
	}
}

// ForwardedAddress adds the client's address as "ip", for a server behind proxies. It reads
// X-Forwarded-For only if the connection comes from a trusted address, such as "10.0.0.0/8", and
// takes the first address from the right that is not trusted. An entry that is no address ends the
// search: the trusted proxy that wrote it is then the client. Without a trusted address it is an
// error: the header would never be read, and behind a proxy all clients would share one counter.
func ForwardedAddress(trusted ...string) (Key, error) {
	if len(trusted) == 0 {
		return nil, errors.New("catraca: ForwardedAddress trusts no proxy, so it would never read X-Forwarded-For: " +
			"name the addresses of the proxies, or use PeerAddress")
	}
	ranges, err := parseRanges(trusted)
	if err != nil {
		return nil, err
	}
	return func(request *http.Request, subject Subject) error {
		client, err := peerOf(request)
		if err != nil {
			return err
		}
		hops := strings.Split(strings.Join(request.Header.Values("X-Forwarded-For"), ","), ",")
		for index := len(hops) - 1; index >= 0 && ranges.contain(client); index-- {
			hop, err := parseAddress(hops[index])
			if err != nil {
				break
			}
			client = hop
		}
		subject["ip"] = client.String()
		return nil
	}, nil
}

// HeaderValue adds the value of a header as an attribute. A request without the header has no such
// attribute: the policy's on_missing decides. Two values are refused, since the handler may use the
// other one.
func HeaderValue(header, attribute string) Key {
	return func(request *http.Request, subject Subject) error {
		values := request.Header.Values(header)
		if len(values) > 1 {
			return fmt.Errorf("the request has %d headers %s", len(values), header)
		}
		if len(values) == 1 && values[0] != "" {
			subject[attribute] = values[0]
		}
		return nil
	}
}

func peerOf(request *http.Request) (netip.Addr, error) {
	return parseAddress(request.RemoteAddr)
}

// parseAddress reads an address with or without a port. IPv4 inside IPv6 becomes IPv4.
func parseAddress(text string) (netip.Addr, error) {
	text = strings.TrimSpace(text)
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	address, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return address.Unmap().WithZone(""), err
}

type addressRanges []netip.Prefix

func parseRanges(texts []string) (addressRanges, error) {
	ranges := make(addressRanges, 0, len(texts))
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			address, addressErr := netip.ParseAddr(text)
			if addressErr != nil {
				return nil, fmt.Errorf("catraca: trusted address %q: %w", text, err)
			}
			prefix = netip.PrefixFrom(address, address.BitLen())
		}
		ranges = append(ranges, prefix.Masked())
	}
	return ranges, nil
}

func (ranges addressRanges) contain(address netip.Addr) bool {
	for _, prefix := range ranges {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}
