package catraca

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"sync"
	"testing"
	"time"

	"catraca-go/catracatest"
)

const testCatalog = `
[policy.login]
by     = ["ip"]
window = "3 per 1m"
block  = "10m"

[policy.wide]
by     = ["ip"]
window = "5 per 1h"

[policy.lookups]
by       = ["participant"]
bucket   = { size = 1000, refill = "100 per 1s" }
cost     = { "404" = 20, default = 1 }
remember = "1h"
credit   = { payment = { amount = 1, on = ["200"] } }

[policy.attempts]
by     = ["ip"]
window = "100 per 1m"

[[policy.attempts.ban]]
when  = "status == 401"
after = "2 per 10m"
for   = "10m"

[locks.kind.short]
ttl     = "600ms"
ttl_max = "1m"
`

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// discardLog is the error log of a test's HTTP server, which has nothing to say about a panic.
func discardLog() *log.Logger {
	return log.New(io.Discard, "", 0)
}

// newTestClient fails the test rather than a call: a busy machine must not reach its deadline.
func newTestClient(t testing.TB, url string, options ...Option) *Client {
	t.Helper()
	defaults := []Option{WithTimeout(10 * time.Second), WithLogger(quiet)}
	client, err := New(url, append(defaults, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func startServer(t testing.TB) *catracatest.Server {
	t.Helper()
	return catracatest.Start(t, testCatalog)
}

func startWithClient(t testing.TB, options ...Option) (*catracatest.Server, *Client) {
	t.Helper()
	server := startServer(t)
	return server, newTestClient(t, server.URL, options...)
}

func mustCheck(t testing.TB, client *Client, gate string, subject Subject, options ...CheckOption) Decision {
	t.Helper()
	decision, err := client.Check(context.Background(), gate, subject, options...)
	if err != nil {
		t.Fatal(err)
	}
	return decision
}

func ip(address string) Subject {
	return Subject{"ip": address}
}

func expect(t testing.TB, isTrue bool, what string, found any) {
	t.Helper()
	if !isTrue {
		t.Fatalf("%s: %+v", what, found)
	}
}

// expectProblem checks that an error is a refusal with this code.
func expectProblem(t testing.TB, err error, code string) {
	t.Helper()
	var problem *Problem
	expect(t, errors.As(err, &problem) && problem.Code == code, "not the problem "+code, err)
}

// manualClock is a clock that a test moves.
type manualClock struct {
	mutex sync.Mutex
	now   time.Time
}

func newManualClock() *manualClock {
	return &manualClock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (m *manualClock) read() time.Time {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.now
}

func (m *manualClock) advance(by time.Duration) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.now = m.now.Add(by)
}

func withClock(clock *manualClock) Option {
	return func(c *Client) error {
		c.now = clock.read
		return nil
	}
}
