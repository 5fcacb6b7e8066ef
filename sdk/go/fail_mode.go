package catraca

import "context"

// FailMode says what becomes of a check that the server does not answer.
type FailMode int

const (
	// FailError returns an error, which is an ErrUnavailable. It is the default: a server that is
	// unavailable must not open the gate unless the program says so.
	FailError FailMode = iota
	// FailOpen allows the request without counting it.
	FailOpen
	// FailClosed denies the request.
	FailClosed
)

// String is the name of the mode.
func (mode FailMode) String() string {
	switch mode {
	case FailOpen:
		return "open"
	case FailClosed:
		return "closed"
	default:
		return "error"
	}
}

// fail is the result of a check that the server did not answer.
func (c *Client) fail(ctx context.Context, mode FailMode, cause error) (Decision, error) {
	cause = unavailableError(cause)
	if c.unavailable.CompareAndSwap(false, true) {
		c.log.WarnContext(ctx, "catraca unavailable; the fail mode applies until it answers again",
			"url", c.base.Redacted(), "fail_mode", mode.String(), "error", cause)
	}
	if mode != FailOpen && mode != FailClosed {
		return denied(), cause
	}
	return Decision{
		Allowed:   mode == FailOpen,
		Reason:    ReasonUnavailable,
		Limit:     -1,
		Remaining: -1,
		Mode:      "enforce",
		Degraded:  true,
		cause:     cause,
	}, nil
}

// noteAnswer ends an outage in the log. One load of an atomic while the server answers.
func (c *Client) noteAnswer(ctx context.Context) {
	if c.unavailable.Load() && c.unavailable.CompareAndSwap(true, false) {
		c.log.InfoContext(ctx, "catraca answers again", "url", c.base.Redacted())
	}
}
