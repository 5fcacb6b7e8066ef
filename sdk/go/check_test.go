package catraca

import (
	"context"
	"testing"
	"time"
)

// covers: 002-22, 002-27, X-13, X-14
func TestCheckAllowsUntilTheLimitAndThenDenies(t *testing.T) {
	_, client := startWithClient(t)
	for remaining := int64(2); remaining >= 0; remaining-- {
		decision := mustCheck(t, client, "login", ip("198.51.100.1"))
		expect(t, decision.Allowed && decision.Reason == ReasonOK, "not allowed", decision)
		expect(t, decision.Limit == 3 && decision.Remaining == remaining, "figures", decision)
		expect(t, decision.RetryAfter == 0 && decision.Ticket == "", "wait or ticket", decision)
	}
	decision := mustCheck(t, client, "login", ip("198.51.100.1"))
	expect(t, !decision.Allowed && decision.Reason == ReasonOverLimit, "not denied", decision)
	expect(t, decision.RetryAfter == 10*time.Minute, "wait of the block", decision)
	expect(t, !decision.BlockedUntil.IsZero(), "end of the block", decision)
	expect(t, decision.Policies[0].Policy == "login" && decision.Policies[0].Charged == 0, "row", decision)
	expect(t, decision.StatusCode() == 429 && decision.RetryAfterSeconds() == 600, "status", decision)
	other := mustCheck(t, client, "login", ip("198.51.100.2"))
	expect(t, other.Allowed, "another subject", other)
}

func TestPeekChargesNothing(t *testing.T) {
	_, client := startWithClient(t)
	for range 5 {
		decision, err := client.Peek(context.Background(), "login", ip("198.51.100.1"))
		expect(t, err == nil && decision.Allowed && decision.Remaining == 3, "peek", decision)
	}
}

func TestCostAndRefAreSent(t *testing.T) {
	_, client := startWithClient(t)
	decision := mustCheck(t, client, "wide", ip("198.51.100.1"), Cost(4))
	expect(t, decision.Allowed && decision.Remaining == 1, "cost", decision)
	costly := mustCheck(t, client, "wide", ip("198.51.100.1"), Cost(6))
	expect(t, costly.Reason == ReasonTooCostly, "too costly", costly)

	ctx := context.Background()
	subject := Subject{"participant": "go"}
	mustCheck(t, client, "lookups", subject, Ref("E1"))
	settled, err := client.SettleRef(ctx, "E1", subject, Outcome{Status: 200})
	expect(t, err == nil && settled.State == "settled", "settle by ref", err)
	credited, err := client.Credit(ctx, "E1", "payment", subject)
	expect(t, err == nil && credited.Applied && credited.Policies[0].Amount == 1, "credit", credited)
	again, err := client.Credit(ctx, "E1", "payment", subject)
	expect(t, err == nil && !again.Applied && again.Reason == "duplicate", "second credit", again)
}

//
func TestSettleReportsTheOutcomeOnce(t *testing.T) {
	_, client := startWithClient(t)
	decision := mustCheck(t, client, "lookups", Subject{"participant": "go"})
	expect(t, decision.Ticket != "", "no ticket", decision)
	for _, state := range []string{"settled", "again"} {
		settled, err := client.Settle(context.Background(), decision.Ticket, Outcome{Status: 404})
		expect(t, err == nil && settled.State == state, "state", settled)
		expect(t, settled.Policies[0].Charged == 20, "charge", settled)
	}
}

// An invalid call is refused, and no fail mode opens the gate for it.
func TestAnInvalidCallIsNeverAllowed(t *testing.T) {
	_, client := startWithClient(t, WithFailMode(FailOpen))
	ctx := context.Background()
	decision, err := client.Check(ctx, "nowhere", ip("198.51.100.1"))
	expectProblem(t, err, "unknown-gate")
	expect(t, !decision.Allowed, "unknown gate", decision)
	decision, err = client.Check(ctx, "login", nil)
	expectProblem(t, err, "missing-attribute")
	expect(t, !decision.Allowed, "missing attribute", decision)
}

func TestOptionsAndURLsAreValidated(t *testing.T) {
	for _, url := range []string{"ftp://a", "127.0.0.1:7878", "http://", "http://a b"} {
		if _, err := New(url); err == nil {
			t.Errorf("the URL %q is accepted", url)
		}
	}
	invalid := map[string]Option{
		"empty caller":       WithCaller(""),
		"caller with spaces": WithCaller("my shop"),
		"no timeout":         WithTimeout(0),
		"negative staleness": WithBlockCache(-1, 1),
	}
	for name, option := range invalid {
		if _, err := New("", option); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestTheEnvironmentGivesURLAndKey(t *testing.T) {
	t.Setenv("CATRACA_URL", "http://catraca.example:1234/base/")
	t.Setenv("CATRACA_KEY", "secret")
	client, err := New("")
	expect(t, err == nil && client.base.String() == "http://catraca.example:1234/base", "url", err)
	expect(t, client.header.Get("Authorization") == "Bearer secret", "key", client.header)
	other, err := New("", WithKey("other"), WithCaller("shop/1.4"))
	expect(t, err == nil && other.header.Get("Authorization") == "Bearer other", "key", err)
	expect(t, other.header.Get("Catraca-Caller") == "shop/1.4", "caller", other.header)
}
