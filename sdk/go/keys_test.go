package catraca

import (
	"net/http"
	"strings"
	"testing"
)

func requestFrom(peer string, forwarded ...string) *http.Request {
	return &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": forwarded}}
}

func subjectBy(t *testing.T, key Key, request *http.Request) Subject {
	t.Helper()
	subject := Subject{}
	expect(t, key(request, subject) == nil, "key", request.RemoteAddr)
	return subject
}

//
func TestTheForwardedAddressIsTheFirstUntrustedOneFromTheRight(t *testing.T) {
	key, err := ForwardedAddress("10.0.0.0/8", "2001:db8::1")
	expect(t, err == nil, "ranges", err)
	cases := []struct {
		name      string
		peer      string
		forwarded []string
		client    string
	}{
		{"an untrusted peer is not believed", "198.51.100.1:80", []string{"203.0.113.9"}, "198.51.100.1"},
		{"one proxy", "10.0.0.1:80", []string{"203.0.113.9"}, "203.0.113.9"},
		{"a forged entry on the left", "10.0.0.1:80", []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9"},
		{"two proxies", "10.0.0.1:80", []string{"1.1.1.1, 203.0.113.9, 10.0.0.2"}, "203.0.113.9"},
		{"two lines", "10.0.0.1:80", []string{"1.1.1.1", "203.0.113.9"}, "203.0.113.9"},
		{"an address with a port", "10.0.0.1:80", []string{"203.0.113.9:4711"}, "203.0.113.9"},
		{"IPv6 with a port", "10.0.0.1:80", []string{"[2001:db8::9]:4711"}, "2001:db8::9"},
		{"IPv4 inside IPv6", "[::ffff:10.0.0.1]:80", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"no header", "10.0.0.1:80", nil, "10.0.0.1"},
		{"an entry that is no address", "10.0.0.1:80", []string{"203.0.113.9, unknown"}, "10.0.0.1"},
		{"only proxies", "10.0.0.1:80", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"a trusted IPv6 proxy", "[2001:db8::1]:80", []string{"203.0.113.9"}, "203.0.113.9"},
	}
	for _, one := range cases {
		subject := subjectBy(t, key, requestFrom(one.peer, one.forwarded...))
		expect(t, subject["ip"] == one.client, one.name, subject)
	}
	_, err = ForwardedAddress("10.0.0.0/99")
	expect(t, err != nil, "a wrong range", err)
	_, err = ForwardedAddress()
	expect(t, err != nil && strings.Contains(err.Error(), "PeerAddress"), "no trusted proxy", err)
}

func TestThePeerAddressIgnoresHeaders(t *testing.T) {
	subject := subjectBy(t, PeerAddress(), requestFrom("[2001:db8::5%eth0]:80", "203.0.113.9"))
	expect(t, subject["ip"] == "2001:db8::5", "peer", subject)
	expect(t, PeerAddress()(requestFrom("pipe"), Subject{}) != nil, "no address", nil)
}

func TestAHeaderIsAnAttributeUnlessItIsMissingOrAmbiguous(t *testing.T) {
	key := HeaderValue("X-Api-Key", "key")
	request := func(values ...string) *http.Request {
		return &http.Request{Header: http.Header{"X-Api-Key": values}}
	}
	expect(t, subjectBy(t, key, request("k1"))["key"] == "k1", "one", nil)
	expect(t, len(subjectBy(t, key, request())) == 0, "none", nil)
	expect(t, key(request("k1", "k2"), Subject{}) != nil, "two", nil)
}
