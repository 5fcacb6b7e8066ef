package catraca

import (
	"context"
	"errors"
	"net/http"
)

// MiddlewareOption changes a middleware.
type MiddlewareOption func(*middleware)

type middleware struct {
	client       *Client
	gate         string
	keys         []Key
	costOf       func(*http.Request) int64
	checkOptions []CheckOption
	respond      func(http.ResponseWriter, *http.Request, Decision)
	next         http.Handler
}

// By makes the subject of a request with these keys, in their order; PeerAddress by default.
func By(keys ...Key) MiddlewareOption {
	return func(m *middleware) { m.keys = keys }
}

// CostOf charges the units that this function returns for a request.
func CostOf(cost func(*http.Request) int64) MiddlewareOption {
	return func(m *middleware) { m.costOf = cost }
}

// CheckWith adds options to every check of the middleware, such as OnFailure(FailOpen).
func CheckWith(options ...CheckOption) MiddlewareOption {
	return func(m *middleware) { m.checkOptions = append(m.checkOptions, options...) }
}

// Respond writes the responses to denied requests, instead of WriteDenial. The headers RateLimit,
// RateLimit-Policy and Retry-After are already set.
func Respond(respond func(http.ResponseWriter, *http.Request, Decision)) MiddlewareOption {
	return func(m *middleware) { m.respond = respond }
}

// Middleware checks every request of a handler against a gate. A request that cannot be checked,
// because the server does not answer, gets 503 with Retry-After unless the fail mode decides. If the
// check has a ticket, the middleware settles it with the status of the response: before the response
// ends, so that a ban by outcome is in force before the client can send its next request. A handler
// that panics counts as a 500.
func (c *Client) Middleware(gate string, options ...MiddlewareOption) func(http.Handler) http.Handler {
	settings := middleware{client: c, gate: gate, keys: []Key{PeerAddress()}, respond: WriteDenial}
	for _, option := range options {
		option(&settings)
	}
	return func(next http.Handler) http.Handler {
		m := settings
		m.next = next
		return &m
	}
}

type decisionKey struct{}

// DecisionOf returns the decision of the middleware, for the handler behind it.
func DecisionOf(ctx context.Context) (Decision, bool) {
	decision, found := ctx.Value(decisionKey{}).(Decision)
	return decision, found
}

// ServeHTTP checks the request, and serves it if it is allowed.
func (m *middleware) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	subject, err := m.subjectOf(r)
	if err != nil {
		writeProblem(w, http.StatusBadRequest, "bad-request", err.Error())
		return
	}
	options := m.checkOptions
	if m.costOf != nil {
		options = append(options[:len(options):len(options)], Cost(m.costOf(r)))
	}
	decision, err := m.client.Check(r.Context(), m.gate, subject, options...)
	if err != nil {
		m.refuse(w, r, err)
		return
	}
	WriteHeaders(w.Header(), decision)
	if !decision.Allowed {
		m.respond(w, r, decision)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), decisionKey{}, decision))
	if decision.Ticket == "" {
		m.next.ServeHTTP(w, r)
		return
	}
	m.serveAndSettle(w, r, decision.Ticket)
}

func (m *middleware) subjectOf(r *http.Request) (Subject, error) {
	subject := make(Subject, len(m.keys))
	for _, key := range m.keys {
		if err := key(r, subject); err != nil {
			return nil, err
		}
	}
	return subject, nil
}

// refuse answers a request whose check has no decision: never by serving it.
func (m *middleware) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return
	}
	if errors.Is(err, ErrUnavailable) {
		writeUnchecked(w)
		return
	}
	var problem *Problem
	if errors.As(err, &problem) && problem.Code == "missing-attribute" {
		writeProblem(w, http.StatusBadRequest, problem.Code, "an attribute of the request is missing")
		return
	}
	m.client.log.ErrorContext(r.Context(), "catraca refused the check; the request is not served",
		"gate", m.gate, "error", err)
	writeProblem(w, http.StatusInternalServerError, "check-refused", "the rate limiter refused the check")
}

// serveAndSettle reports the status of the response. A panic is a 500, and goes on.
func (m *middleware) serveAndSettle(w http.ResponseWriter, r *http.Request, ticket string) {
	recorder := &statusRecorder{ResponseWriter: w}
	returned := false
	defer func() {
		status := recorder.outcome()
		if !returned {
			status = http.StatusInternalServerError
		}
		// The client may have disconnected; the outcome counts in any case.
		ctx := context.WithoutCancel(r.Context())
		if _, err := m.client.Settle(ctx, ticket, Outcome{Status: status}); err != nil {
			m.client.log.WarnContext(ctx, "catraca: the settle failed; the held units stay charged",
				"gate", m.gate, "status", status, "error", err)
		}
	}()
	m.next.ServeHTTP(recorder, r)
	returned = true
}
