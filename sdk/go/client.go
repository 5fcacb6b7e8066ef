package catraca

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

const defaultURL = "http://127.0.0.1:7878"

// Client calls one Catraca server. It is safe for concurrent use; a program needs only one.
type Client struct {
	base      url.URL
	header    http.Header
	key       string
	caller    string
	timeout   time.Duration
	failMode  FailMode
	transport http.RoundTripper
	retries   retryPolicy
	staleness time.Duration
	entries   int
	blocks    *blockCache
	addresses addressWatch
	log       *slog.Logger
	now       func() time.Time
	// unavailable is true from the first check without an answer to the next answer, so that an
	// outage is logged once.
	unavailable atomic.Bool
}

// New returns a client of the server at this URL. An empty URL stands for the environment variable
// CATRACA_URL, or else http://127.0.0.1:7878. The API key is that of the environment variable
// CATRACA_KEY unless WithKey gives another. New makes no call; see Verify.
func New(rawURL string, options ...Option) (*Client, error) {
	base, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	client := &Client{
		base:      base,
		key:       os.Getenv("CATRACA_KEY"),
		caller:    "catraca-go/" + Version,
		timeout:   defaultTimeout,
		failMode:  FailError,
		retries:   defaultRetries,
		staleness: defaultStaleness,
		entries:   defaultEntries,
		log:       slog.Default(),
		now:       time.Now,
	}
	for _, option := range options {
		if err := option(client); err != nil {
			return nil, err
		}
	}
	if client.transport == nil {
		client.transport = newTransport()
	}
	client.blocks = newBlockCache(client.staleness, client.entries)
	client.header = http.Header{"Content-Type": {"application/json"}, "Catraca-Caller": {client.caller}}
	if client.key != "" {
		client.header["Authorization"] = []string{"Bearer " + client.key}
	}
	return client, nil
}

// Close closes the idle connections of the client.
func (c *Client) Close() error {
	type idleCloser interface{ CloseIdleConnections() }
	if transport, ok := c.transport.(idleCloser); ok {
		transport.CloseIdleConnections()
	}
	return nil
}

func parseURL(rawURL string) (url.URL, error) {
	if rawURL == "" {
		rawURL = os.Getenv("CATRACA_URL")
	}
	if rawURL == "" {
		rawURL = defaultURL
	}
	parsed, err := url.Parse(rawURL)
	if err != nil {
		return url.URL{}, fmt.Errorf("catraca: %w", err)
	}
	if (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" {
		return url.URL{}, errors.New("catraca: the URL must have the form http://HOST:PORT")
	}
	parsed.Path = strings.TrimSuffix(parsed.Path, "/")
	return *parsed, nil
}
