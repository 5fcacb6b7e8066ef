package catraca

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"time"
)

const (
	defaultTimeout   = 500 * time.Millisecond
	defaultStaleness = 5 * time.Second
	defaultEntries   = 10_000
)

// Option configures a Client.
type Option func(*Client) error

// WithKey sends this API key with every call.
func WithKey(key string) Option {
	return func(c *Client) error {
		c.key = key
		return nil
	}
}

var callerPattern = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,64}$`)

// WithCaller names the program in the header Catraca-Caller, such as "shop/1.4", so that operators
// see which program uses which gate. The default is the name and version of this package.
func WithCaller(caller string) Option {
	return func(c *Client) error {
		if !callerPattern.MatchString(caller) {
			return fmt.Errorf("catraca: caller %q: use 1 to 64 characters of A-Z a-z 0-9 . _ / -", caller)
		}
		c.caller = caller
		return nil
	}
}

// WithTimeout sets the deadline of a call, 500 ms by default. An earlier deadline of the context
// has precedence.
func WithTimeout(timeout time.Duration) Option {
	return func(c *Client) error {
		if timeout <= 0 {
			return errors.New("catraca: the timeout must be positive")
		}
		c.timeout = timeout
		return nil
	}
}

// WithFailMode says what becomes of checks while the server is unavailable; FailError by default.
func WithFailMode(mode FailMode) Option {
	return func(c *Client) error {
		c.failMode = mode
		return nil
	}
}

// WithBlockCache sets for how long a block is remembered and for how many subjects at most; 5 s and
// 10,000 by default. The client denies a blocked subject without a call, and learns of a release
// after at most the staleness. A staleness of 0 turns the cache off.
func WithBlockCache(staleness time.Duration, entries int) Option {
	return func(c *Client) error {
		if staleness < 0 || entries < 0 {
			return errors.New("catraca: the staleness and the entries of the block cache must not be negative")
		}
		c.staleness = staleness
		c.entries = entries
		return nil
	}
}

// WithTransport replaces the pooled transport, for example for TLS with a private certificate
// authority. The transport must not repeat a POST whose bytes were sent: http.Transport does not.
func WithTransport(transport http.RoundTripper) Option {
	return func(c *Client) error {
		c.transport = transport
		return nil
	}
}

// WithLogger replaces slog.Default. The client logs the start and the end of an outage, settles and
// releases of WithLock that failed, and calls of the middleware that the server refused.
func WithLogger(log *slog.Logger) Option {
	return func(c *Client) error {
		c.log = log
		return nil
	}
}
