package catraca

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// The codes of warnings.
const (
	// WarnUnavailable: the server does not answer.
	WarnUnavailable = "unavailable"
	// WarnRefused: the server does not accept the key.
	WarnRefused = "key-refused"
	// WarnWrongRole: the key may not check.
	WarnWrongRole = "wrong-role"
	// WarnAdminKey: the key may do more than a program needs that checks.
	WarnAdminKey = "admin-key"
	// WarnUnknownGate: the catalog does not declare the gate.
	WarnUnknownGate = "unknown-gate"
	// WarnClock: the clock of this machine and that of the server differ by more than 30 s.
	WarnClock = "clock-difference"
	// WarnSameAddress: all checks, at least 100, had the same client address, as behind a proxy
	// that is not trusted.
	WarnSameAddress = "same-address"
)

const clockTolerance = 30 * time.Second

// Warning is a likely mistake in how the program is set up.
type Warning struct {
	Code   string
	Gate   string
	Detail string
}

func (w Warning) String() string {
	return w.Code + ": " + w.Detail
}

// Verify asks the server whether this client can check these gates, without charging anything, and
// returns likely mistakes. Call it once at the start, and log what it returns.
func (c *Client) Verify(ctx context.Context, gates ...string) []Warning {
	var caller struct {
		Role string `json:"role"`
	}
	askedAt := c.now()
	requestCtx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	answer, err := c.get(requestCtx, "/v1/whoami", "")
	switch {
	case err != nil:
		return []Warning{{Code: WarnUnavailable, Detail: err.Error()}}
	case answer.status != http.StatusOK:
		return []Warning{{Code: WarnRefused, Detail: problemOf(answer).Error()}}
	case decode(answer.body, &caller) != nil:
		return []Warning{{Code: WarnUnavailable, Detail: "the answer is not that of a Catraca server"}}
	}
	warnings := c.judgeRole(caller.Role)
	warnings = append(warnings, judgeClock(answer.header.Get("Date"), askedAt, c.now())...)
	for _, gate := range gates {
		warnings = append(warnings, c.judgeGate(ctx, gate)...)
	}
	return append(warnings, c.addresses.warning()...)
}

func (c *Client) judgeRole(role string) []Warning {
	switch {
	case role == "check", c.key == "":
		return nil
	case role == "admin":
		return []Warning{{Code: WarnAdminKey, Detail: "the key has the role admin, and a check needs only the role check"}}
	}
	detail := fmt.Sprintf("the key has the role %s and cannot check; make one with `catraca keygen --role check`", role)
	return []Warning{{Code: WarnWrongRole, Detail: detail}}
}

// judgeClock compares the clocks. The Date header has whole seconds, and was written between both
// instants.
func judgeClock(date string, before, after time.Time) []Warning {
	server, err := http.ParseTime(date)
	if err != nil {
		return nil
	}
	early := server.Add(time.Second + clockTolerance).Before(before)
	late := server.Add(-clockTolerance).After(after)
	if !early && !late {
		return nil
	}
	detail := fmt.Sprintf("the clock of the server shows %s, and that of this machine %s", date, after.UTC().Format(http.TimeFormat))
	return []Warning{{Code: WarnClock, Detail: detail}}
}

// judgeGate peeks without a subject: a known gate misses its attributes, or decides.
func (c *Client) judgeGate(ctx context.Context, gate string) []Warning {
	decision, err := c.Peek(ctx, gate, nil)
	var problem *Problem
	unknown := errors.As(err, &problem) && problem.Code == "unknown-gate"
	if !unknown && !decision.Unlisted {
		return nil
	}
	detail := fmt.Sprintf("the catalog declares no gate or policy %q", gate)
	if decision.Unlisted {
		detail += ", and its default policy decides"
	}
	return []Warning{{Code: WarnUnknownGate, Gate: gate, Detail: detail}}
}
