package catraca

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
)

// CheckOption changes one check or peek.
type CheckOption func(*checkCall)

type checkCall struct {
	cost     *int64
	ref      string
	noLists  bool
	failMode FailMode
}

// Cost charges these units instead of what the policy says.
func Cost(units int64) CheckOption {
	return func(call *checkCall) { call.cost = &units }
}

// Ref remembers the check under a name, to settle or credit it later without its ticket.
func Ref(name string) CheckOption {
	return func(call *checkCall) { call.ref = name }
}

// WithoutLists ignores the allowlist and the blocklist.
func WithoutLists() CheckOption {
	return func(call *checkCall) { call.noLists = true }
}

// OnFailure replaces the fail mode of the client for this call.
func OnFailure(mode FailMode) CheckOption {
	return func(call *checkCall) { call.failMode = mode }
}

// Check charges the gate for this subject and says whether the request may pass. The error is an
// ErrUnavailable if the server did not answer, unless the fail mode decides then; a *Problem if the
// server refused the call as invalid; or that of a canceled context. The decision beside an error
// denies.
//
// A check is sent once. It is sent again only if the connection failed before any byte of it was
// written, so it is never charged twice.
func (c *Client) Check(ctx context.Context, gate string, subject Subject, options ...CheckOption) (Decision, error) {
	c.watchAddress(ctx, subject)
	call := c.newCheck(options)
	body, key, err := call.encode(gate, subject)
	if err != nil {
		return denied(), err
	}
	if decision, found := c.blocks.find(key, c.now()); found {
		return decision, nil
	}
	// The age of a block is counted from before the request, as the server decided after that.
	asked := c.now()
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	answer, err := c.post(ctx, "/v1/check", body)
	decision, err := c.conclude(ctx, call.failMode, answer, err)
	if err == nil {
		c.blocks.learn(key, decision, asked)
	}
	return decision, err
}

// TypedGate is a gate with its attributes, as `catraca types --lang go` prints them.
type TypedGate interface {
	Gate() string
	Subject() map[string]string
}

// CheckGate is Check with a gate and attributes that the compiler has checked.
func (c *Client) CheckGate(ctx context.Context, gate TypedGate, options ...CheckOption) (Decision, error) {
	return c.Check(ctx, gate.Gate(), gate.Subject(), options...)
}

// Peek is the decision that a check would get now. Nothing is charged, so Peek is retried. Without
// an answer it returns an ErrUnavailable: the fail mode is for checks.
func (c *Client) Peek(ctx context.Context, gate string, subject Subject, options ...CheckOption) (Decision, error) {
	call := c.newCheck(options)
	body, _, err := call.encode(gate, subject)
	if err != nil {
		return denied(), err
	}
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	answer, err := c.retry(ctx, func() (response, error) { return c.post(ctx, "/v1/peek", body) })
	return c.conclude(ctx, FailError, answer, err)
}

// watchAddress logs once that all checks until now had the same address.
func (c *Client) watchAddress(ctx context.Context, subject Subject) {
	address, found := subject["ip"]
	if !found || !c.addresses.see(address) {
		return
	}
	for _, warning := range c.addresses.warning() {
		c.log.WarnContext(ctx, "catraca: "+warning.Detail, "code", warning.Code)
	}
}

func (c *Client) newCheck(options []CheckOption) checkCall {
	call := checkCall{failMode: c.failMode}
	for _, option := range options {
		option(&call)
	}
	return call
}

// conclude turns a response, or the lack of one, into a decision or an error.
func (c *Client) conclude(ctx context.Context, mode FailMode, answer response, err error) (Decision, error) {
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return denied(), err
		}
		return c.fail(ctx, mode, err)
	}
	if answer.status != 200 {
		problem := problemOf(answer)
		if isUnavailable(answer.status) {
			return c.fail(ctx, mode, problem)
		}
		return denied(), problem
	}
	decision, err := parseDecision(answer.body)
	if err != nil {
		return c.fail(ctx, mode, err)
	}
	c.noteAnswer(ctx)
	return decision, nil
}

// denied is the decision beside an error.
func denied() Decision {
	return Decision{Limit: -1, Remaining: -1}
}

// encode returns the body of the call, and the key of its block: gate and subject, and whether the
// lists apply. Cost and ref do not affect a block.
func (call checkCall) encode(gate string, subject Subject) (body []byte, key string, err error) {
	if subject == nil {
		subject = Subject{}
	}
	gateText, err := json.Marshal(gate)
	if err != nil {
		return nil, "", err
	}
	// Keys of a map are sorted, so equal subjects have equal texts.
	subjectText, err := json.Marshal(subject)
	if err != nil {
		return nil, "", err
	}
	body = make([]byte, 0, len(gateText)+len(subjectText)+64)
	body = append(append(body, `{"gate":`...), gateText...)
	body = append(append(body, `,"subject":`...), subjectText...)
	if call.noLists {
		body = append(body, `,"lists":false`...)
	}
	key = string(body)
	if call.cost != nil {
		body = append(body, `,"cost":`...)
		body = strconv.AppendInt(body, *call.cost, 10)
	}
	if call.ref != "" {
		refText, err := json.Marshal(call.ref)
		if err != nil {
			return nil, "", err
		}
		body = append(append(body, `,"ref":`...), refText...)
	}
	return append(body, '}'), key, nil
}
