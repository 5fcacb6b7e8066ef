package catraca

import (
	"encoding/json"
	"errors"
	"time"
)

// Subject is the attributes of a caller, such as {"ip": "198.51.100.7"}.
type Subject map[string]string

// Reason says why a request was allowed or denied.
type Reason string

// The reasons of decisions.
const (
	ReasonOK          Reason = "ok"
	ReasonOverLimit   Reason = "over_limit"
	ReasonBlocked     Reason = "blocked"
	ReasonBlocklisted Reason = "blocklisted"
	ReasonAllowlisted Reason = "allowlisted"
	ReasonTooCostly   Reason = "too_costly"
	ReasonMissing     Reason = "missing"
	// ReasonUnavailable: the server did not answer, and the fail mode decided; or the store of
	// the server failed, and the policy denies in that case.
	ReasonUnavailable Reason = "unavailable"
)

// Decision says whether a request may pass. A denial is a decision, not an error.
type Decision struct {
	Allowed bool
	Reason  Reason
	// Policy is the policy that decided, or the tightest if the request is allowed.
	Policy string
	// Limit and Remaining are those of that policy; -1 if nothing is counted.
	Limit     int64
	Remaining int64
	// RetryAfter is the time until the same check would pass; 0 if it passes now or never would.
	RetryAfter time.Duration
	// ResetAfter is the time until the full quota is available; 0 if it is, or never will be.
	ResetAfter time.Duration
	// BlockedUntil is the end of the active block; zero if there is none, or if it has no end.
	BlockedUntil time.Time
	// Mode is enforce, shadow or off.
	Mode string
	// Degraded: the decision was made without the full state of the server or of its store.
	Degraded bool
	// Cached: the block cache of this client or of the server decided.
	Cached bool
	// Unlisted: the catalog does not declare the gate, and the default policy decided.
	Unlisted bool
	// Status is the HTTP status that a ban rule asks for; 0 if none does.
	Status int
	// Message is the policy's text for the caller.
	Message string
	// Ticket settles the check; empty if an outcome would change nothing.
	Ticket   string
	Revision string
	Policies []Row

	cause error
}

// Row is one policy's part of a decision.
type Row struct {
	Policy    string
	Attribute string
	Allowed   bool
	Reason    Reason
	Limit     int64
	Remaining int64
	// Window is the length of the limit's window, or how long an empty bucket takes to fill; 0 if
	// nothing is counted.
	Window time.Duration
	// Balance is the tokens of a bucket, which may be negative; nil if the policy has no bucket.
	Balance      *int64
	RetryAfter   time.Duration
	ResetAfter   time.Duration
	BlockedUntil time.Time
	// Level is the number of escalating offences of the active block that are remembered; 0 if
	// there is no block, or if none escalated.
	Level   int
	Charged int64
	Mode    string
	Windows []Window
}

// Window is one of several windows of a policy.
type Window struct {
	Limit      int64
	Length     time.Duration
	Remaining  int64
	RetryAfter time.Duration
	ResetAfter time.Duration
}

// Cause says why the fail mode decided and not the server: an ErrUnavailable, with the error of the
// call in it. It is nil for a decision of the server.
func (d Decision) Cause() error {
	return d.cause
}

type wireFigures struct {
	Policy       string     `json:"policy"`
	Allowed      bool       `json:"allowed"`
	Reason       Reason     `json:"reason"`
	Limit        *int64     `json:"limit"`
	Remaining    *int64     `json:"remaining"`
	ResetAfterMs int64      `json:"reset_after_ms"`
	RetryAfterMs int64      `json:"retry_after_ms"`
	BlockedUntil *time.Time `json:"blocked_until"`
	Mode         string     `json:"mode"`
}

type wireDecision struct {
	wireFigures
	Degraded bool      `json:"degraded"`
	Cached   bool      `json:"cached"`
	Unlisted bool      `json:"unlisted"`
	Status   int       `json:"status"`
	Message  string    `json:"message"`
	Ticket   string    `json:"ticket"`
	Revision string    `json:"revision"`
	Policies []wireRow `json:"policies"`
}

type wireRow struct {
	wireFigures
	Attribute string       `json:"attribute"`
	WindowMs  int64        `json:"window_ms"`
	Balance   *int64       `json:"balance"`
	Level     int          `json:"level"`
	Charged   int64        `json:"charged"`
	Windows   []wireWindow `json:"windows"`
}

type wireWindow struct {
	Limit        int64 `json:"limit"`
	WindowMs     int64 `json:"window_ms"`
	Remaining    int64 `json:"remaining"`
	RetryAfterMs int64 `json:"retry_after_ms"`
	ResetAfterMs int64 `json:"reset_after_ms"`
}

func parseDecision(body []byte) (Decision, error) {
	var wire wireDecision
	if err := json.Unmarshal(body, &wire); err != nil {
		return Decision{}, err
	}
	if wire.Reason == "" {
		return Decision{}, errors.New("the response is not a decision; does the URL name Catraca?")
	}
	decision := Decision{
		Allowed: wire.Allowed, Reason: wire.Reason, Policy: wire.Policy,
		Limit: orMinusOne(wire.Limit), Remaining: orMinusOne(wire.Remaining),
		RetryAfter: millis(wire.RetryAfterMs), ResetAfter: millis(wire.ResetAfterMs),
		BlockedUntil: orZero(wire.BlockedUntil), Mode: wire.Mode,
		Degraded: wire.Degraded, Cached: wire.Cached, Unlisted: wire.Unlisted,
		Status: wire.Status, Message: wire.Message, Ticket: wire.Ticket, Revision: wire.Revision,
		Policies: make([]Row, len(wire.Policies)),
	}
	for index, row := range wire.Policies {
		decision.Policies[index] = row.row()
	}
	return decision, nil
}

func (row wireRow) row() Row {
	var windows []Window
	for _, window := range row.Windows {
		windows = append(windows, Window{
			Limit: window.Limit, Length: millis(window.WindowMs), Remaining: window.Remaining,
			RetryAfter: millis(window.RetryAfterMs), ResetAfter: millis(window.ResetAfterMs),
		})
	}
	return Row{
		Policy: row.Policy, Attribute: row.Attribute, Allowed: row.Allowed, Reason: row.Reason,
		Limit: orMinusOne(row.Limit), Remaining: orMinusOne(row.Remaining),
		Window: millis(row.WindowMs), Balance: row.Balance,
		RetryAfter: millis(row.RetryAfterMs), ResetAfter: millis(row.ResetAfterMs),
		BlockedUntil: orZero(row.BlockedUntil), Level: row.Level, Charged: row.Charged,
		Mode: row.Mode, Windows: windows,
	}
}

func millis(value int64) time.Duration {
	return time.Duration(value) * time.Millisecond
}

func orMinusOne(value *int64) int64 {
	if value == nil {
		return -1
	}
	return *value
}

func orZero(value *time.Time) time.Time {
	if value == nil {
		return time.Time{}
	}
	return *value
}
