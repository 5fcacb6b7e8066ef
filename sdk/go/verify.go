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
	header, err := c.read(ctx, "/v1/whoami", nil, &caller)
	if err != nil {
		return []Warning{warningOf(err)}
	}
	warnings := c.judgeRole(caller.Role)
	warnings = append(warnings, judgeClock(header.Get("Date"), askedAt, c.now())...)
	warnings = append(warnings, c.judgeGates(ctx, gates)...)
	return append(warnings, c.addresses.warning()...)
}

// warningOf says why a call of Verify had no result.
func warningOf(err error) Warning {
	if errors.Is(err, ErrUnavailable) {
		return Warning{Code: WarnUnavailable, Detail: err.Error()}
	}
	return Warning{Code: WarnRefused, Detail: err.Error()}
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

// catalogNames is what the catalog declares.
type catalogNames struct {
	names map[string]bool
	// fallback is the default policy; empty if there is none.
	fallback string
}

// judgeGates compares the gates with those of the catalog, or peeks them if the key may not read it.
func (c *Client) judgeGates(ctx context.Context, gates []string) []Warning {
	if len(gates) == 0 {
		return nil
	}
	var warnings []Warning
	declared, err := c.declaredNames(ctx)
	var problem *Problem
	switch {
	case errors.As(err, &problem) && problem.Code == "namespace-bound-key":
		for _, gate := range gates {
			warnings = append(warnings, c.peekGate(ctx, gate)...)
		}
	case err != nil:
		warnings = append(warnings, warningOf(err))
	default:
		for _, gate := range gates {
			if !declared.names[gate] {
				warnings = append(warnings, unknownGate(gate, declared.fallback))
			}
		}
	}
	return warnings
}

// declaredNames are the policies and gates of the catalog.
func (c *Client) declaredNames(ctx context.Context) (catalogNames, error) {
	var list struct {
		Policies []struct {
			Policy string `json:"policy"`
		} `json:"policies"`
	}
	var catalog struct {
		Default string `json:"default"`
		Gates   []struct {
			Gate string `json:"gate"`
		} `json:"gates"`
	}
	if _, err := c.read(ctx, "/v1/policies", nil, &list); err != nil {
		return catalogNames{}, err
	}
	if _, err := c.read(ctx, "/v1/config", nil, &catalog); err != nil {
		return catalogNames{}, err
	}
	declared := catalogNames{names: map[string]bool{}, fallback: catalog.Default}
	for _, row := range list.Policies {
		declared.names[row.Policy] = true
	}
	for _, row := range catalog.Gates {
		declared.names[row.Gate] = true
	}
	return declared, nil
}

// peekGate is for a key that may not read the catalog. It peeks without a subject: a known gate
// misses its attributes, or decides. It cannot see that only the default policy decides if that
// policy needs attributes.
func (c *Client) peekGate(ctx context.Context, gate string) []Warning {
	decision, err := c.Peek(ctx, gate, nil)
	var problem *Problem
	switch {
	case errors.As(err, &problem) && problem.Code == "unknown-gate":
		return []Warning{unknownGate(gate, "")}
	case errors.Is(err, ErrUnavailable):
		return []Warning{warningOf(err)}
	case decision.Unlisted:
		return []Warning{unknownGate(gate, decision.Policy)}
	default:
		return nil
	}
}

func unknownGate(gate, fallback string) Warning {
	detail := fmt.Sprintf("the catalog declares no gate or policy %q: every check of it will fail", gate)
	if fallback != "" {
		detail = fmt.Sprintf("the catalog declares no gate or policy %q: the policy %s decides", gate, fallback)
	}
	return Warning{Code: WarnUnknownGate, Gate: gate, Detail: detail}
}
