package catraca

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	connectionsMax     = 256
	idleConnectionsMax = 64
	// idleTimeout is shorter than the server's (75 s by default), so that the client closes an idle
	// connection first and no request is written to a closed one.
	idleTimeout      = 60 * time.Second
	dialTimeout      = 2 * time.Second
	responseBytesMax = 4 << 20
)

// newTransport returns a pooled HTTP/1.1 transport. http.Transport repeats a POST only if the
// connection failed before any byte of the request was written, so a check is never charged twice.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		MaxConnsPerHost:        connectionsMax,
		MaxIdleConns:           idleConnectionsMax,
		MaxIdleConnsPerHost:    idleConnectionsMax,
		IdleConnTimeout:        idleTimeout,
		TLSHandshakeTimeout:    dialTimeout,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
	}
}

// response is an answer of the server, read to its end.
type response struct {
	status int
	header http.Header
	body   []byte
}

// post sends one request and reads its response. Any status is a response; an error means that
// there is none.
func (c *Client) post(ctx context.Context, path string, body []byte) (response, error) {
	return c.send(ctx, http.MethodPost, path, "", body)
}

func (c *Client) get(ctx context.Context, path, query string) (response, error) {
	return c.send(ctx, http.MethodGet, path, query, nil)
}

// send does not follow redirects: RoundTrip makes exactly one request.
func (c *Client) send(ctx context.Context, method, path, query string, body []byte) (response, error) {
	address := c.base
	address.Path += path
	address.RawQuery = query
	request := (&http.Request{
		Method:     method,
		URL:        &address,
		Host:       address.Host,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     c.header,
	}).WithContext(ctx)
	if body != nil {
		reader := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		request.Body, _ = reader()
		request.GetBody = reader
		request.ContentLength = int64(len(body))
	}
	answer, err := c.transport.RoundTrip(request)
	if err != nil {
		return response{}, causeOf(ctx, err)
	}
	defer answer.Body.Close()
	text, err := readBody(answer)
	if err != nil {
		return response{}, causeOf(ctx, err)
	}
	return response{answer.StatusCode, answer.Header, text}, nil
}

// readBody reads the body to its end, so that the connection can be used again.
func readBody(answer *http.Response) ([]byte, error) {
	if length := answer.ContentLength; length >= 0 && length <= responseBytesMax {
		text := make([]byte, length)
		_, err := io.ReadFull(answer.Body, text)
		return text, err
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, responseBytesMax+1))
	if err == nil && len(text) > responseBytesMax {
		err = fmt.Errorf("the response has more than %d bytes", responseBytesMax)
	}
	return text, err
}

// causeOf names the deadline in an error that it caused.
func causeOf(ctx context.Context, err error) error {
	if ctxErr := ctx.Err(); ctxErr != nil && !errors.Is(err, ctxErr) {
		return fmt.Errorf("%w: %w", ctxErr, err)
	}
	return err
}

// withTimeout gives a context the deadline of the client; an earlier one of the caller remains.
func (c *Client) withTimeout(ctx context.Context, extra time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout+extra)
}
