package catraca

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// covers: 002-34, X-15
func TestTheFailModeDecidesWhileTheServerIsDown(t *testing.T) {
	server, standard := startWithClient(t)
	open := newTestClient(t, server.URL, WithFailMode(FailOpen))
	closed := newTestClient(t, server.URL, WithFailMode(FailClosed))
	mustCheck(t, open, "login", ip("198.51.100.1"))
	server.Kill()
	cases := []struct {
		name    string
		client  *Client
		options []CheckOption
		allowed bool
	}{
		{"open by the client", open, nil, true},
		{"open by the call, not the default", standard, []CheckOption{OnFailure(FailOpen)}, true},
		{"closed by the client", closed, nil, false},
		{"closed by the call", open, []CheckOption{OnFailure(FailClosed)}, false},
		{"open by the call", closed, []CheckOption{OnFailure(FailOpen)}, true},
	}
	for _, one := range cases {
		decision := mustCheck(t, one.client, "login", ip("198.51.100.1"), one.options...)
		expect(t, decision.Allowed == one.allowed, one.name, decision)
		expect(t, decision.Degraded && decision.Reason == ReasonUnavailable, one.name, decision)
		expect(t, errors.Is(decision.Cause(), ErrUnavailable), one.name, decision.Cause())
	}
	errorOf := map[string]func() (Decision, error){
		"error by default": func() (Decision, error) {
			return standard.Check(context.Background(), "login", ip("198.51.100.1"))
		},
		"error by the call": func() (Decision, error) {
			return open.Check(context.Background(), "login", ip("198.51.100.1"), OnFailure(FailError))
		},
		"peek": func() (Decision, error) { return open.Peek(context.Background(), "login", ip("198.51.100.1")) },
	}
	for name, call := range errorOf {
		decision, err := call()
		expect(t, errors.Is(err, ErrUnavailable) && !decision.Allowed, name, err)
	}
	denial := mustCheck(t, closed, "login", ip("198.51.100.1"))
	expect(t, denial.StatusCode() == 503, "status", denial)
	_, err := open.Settle(context.Background(), "ticket", Outcome{Status: 200})
	expect(t, errors.Is(err, ErrUnavailable), "settle", err)
}

// A server that accepts connections and never answers.
func startSilentServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return "http://" + listener.Addr().String()
}

func TestNoCallOutlivesItsDeadline(t *testing.T) {
	const short = 50 * time.Millisecond
	url := startSilentServer(t)
	quick := newTestClient(t, url, WithTimeout(short))
	patient := newTestClient(t, url, WithTimeout(time.Minute))
	calls := map[string]func(ctx context.Context, client *Client){
		"check":  func(ctx context.Context, c *Client) { _, _ = c.Check(ctx, "login", ip("198.51.100.1")) },
		"peek":   func(ctx context.Context, c *Client) { _, _ = c.Peek(ctx, "login", ip("198.51.100.1")) },
		"settle": func(ctx context.Context, c *Client) { _, _ = c.Settle(ctx, "ticket", Outcome{}) },
		"lock":   func(ctx context.Context, c *Client) { _, _ = c.Acquire(ctx, "order-1") },
		"verify": func(ctx context.Context, c *Client) { c.Verify(ctx, "login") },
	}
	for name, call := range calls {
		begun := time.Now()
		call(context.Background(), quick)
		took := time.Since(begun)
		expect(t, short <= took && took < 5*time.Second, name+": deadline of the client", took)
		ctx, cancel := context.WithTimeout(context.Background(), short)
		begun = time.Now()
		call(ctx, patient)
		took = time.Since(begun)
		expect(t, short <= took && took < 5*time.Second, name+": deadline of the context", took)
		cancel()
	}
}

func TestACanceledContextIsAnErrorAndNoDecision(t *testing.T) {
	client := newTestClient(t, startSilentServer(t))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	decision, err := client.Check(ctx, "login", ip("198.51.100.1"))
	expect(t, errors.Is(err, context.Canceled) && !decision.Allowed, "canceled", err)
}

func TestAResponseThatIsNoDecisionIsNoAnswer(t *testing.T) {
	for _, body := range []string{"<html>", "{}", "null"} {
		page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, body)
		}))
		_, err := newTestClient(t, page.URL).Check(context.Background(), "login", ip("198.51.100.1"))
		expect(t, errors.Is(err, ErrUnavailable), body, err)
		page.Close()
	}
}
