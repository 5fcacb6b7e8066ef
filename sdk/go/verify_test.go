package catraca

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"catraca-go/catracatest"
)

func codesOf(warnings []Warning) string {
	var codes []string
	for _, warning := range warnings {
		codes = append(codes, warning.Code)
	}
	return strings.Join(codes, " ")
}

func TestVerifyWarnsOfUnknownGatesAndRoles(t *testing.T) {
	catalog := testCatalog
	keys := map[string]string{}
	for _, role := range []string{"read", "check", "admin"} {
		key, table := catracatest.NewKey(t, role)
		keys[role] = key
		catalog += table
	}
	server := catracatest.Start(t, catalog)
	verify := func(key string, gates ...string) string {
		client := newTestClient(t, server.URL, WithKey(key))
		return codesOf(client.Verify(context.Background(), gates...))
	}
	expect(t, verify(keys["check"], "login", "wide") == "", "a correct setup", verify(keys["check"], "login"))
	expect(t, verify(keys["check"], "login", "logn") == WarnUnknownGate, "gate", verify(keys["check"], "logn"))
	expect(t, verify(keys["read"]) == WarnWrongRole, "read", verify(keys["read"]))
	expect(t, verify(keys["admin"]) == WarnAdminKey, "admin", verify(keys["admin"]))
	expect(t, verify("unknown") == WarnRefused, "key", verify("unknown"))
	server.Kill()
	expect(t, verify(keys["check"]) == WarnUnavailable, "killed", verify(keys["check"]))
}

// A default policy without attributes decides a peek; one with attributes refuses it.
func TestVerifyWarnsOfAGateThatTheDefaultPolicyDecides(t *testing.T) {
	for _, by := range []string{`[]`, `["ip"]`} {
		server := catracatest.Start(t, "default = \"all\"\n[policy.all]\nwindow = \"5 per 1m\"\nby = "+by+"\n")
		warnings := newTestClient(t, server.URL).Verify(context.Background(), "all", "logn")
		expect(t, codesOf(warnings) == WarnUnknownGate && warnings[0].Gate == "logn", by, warnings)
		expect(t, strings.Contains(warnings[0].Detail, "the policy all decides"), by, warnings)
	}
}

func TestVerifyWithAKeyOfOneNamespaceFindsUnknownGatesToo(t *testing.T) {
	key, table := catracatest.NewKey(t, "check", "--namespace", "shop")
	for _, fallback := range []string{"", "default = \"all\"\n"} {
		catalog := fallback + "[policy.all]\nwindow = \"5 per 1m\"\nby = []\n" + table
		server := catracatest.Start(t, catalog)
		client := newTestClient(t, server.URL, WithKey(key))
		warnings := client.Verify(context.Background(), "all", "logn")
		expect(t, codesOf(warnings) == WarnUnknownGate && warnings[0].Gate == "logn", fallback, warnings)
	}
}

func TestVerifyWarnsOfAClockThatDiffers(t *testing.T) {
	server := startServer(t)
	for _, offset := range []time.Duration{-32 * time.Second, 0, 32 * time.Second} {
		client := newTestClient(t, server.URL)
		client.now = func() time.Time { return time.Now().Add(offset) }
		warnings := codesOf(client.Verify(context.Background(), "login"))
		expect(t, (warnings == WarnClock) == (offset != 0), offset.String(), warnings)
	}
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	date := noon.Format(http.TimeFormat)
	expect(t, len(judgeClock(date, noon.Add(31*time.Second), noon.Add(31*time.Second))) == 0, "within", date)
	expect(t, len(judgeClock(date, noon.Add(31*time.Second+1), noon.Add(time.Minute))) == 1, "fast", date)
	expect(t, len(judgeClock(date, noon.Add(-time.Minute), noon.Add(-30*time.Second-1))) == 1, "slow", date)
}

func TestVerifyWarnsWhenAllChecksHaveTheSameAddress(t *testing.T) {
	server := catracatest.Start(t, "[policy.site]\nby = [\"ip\"]\nwindow = \"1000 per 1m\"\n")
	client := newTestClient(t, server.URL)
	url := serveWith(t, client.Middleware("site"), hello)
	for range addressSample - 1 {
		getFrom(t, url)
	}
	expect(t, codesOf(client.Verify(context.Background())) == "", "too few checks", nil)
	getFrom(t, url)
	expect(t, codesOf(client.Verify(context.Background())) == WarnSameAddress, "one address", nil)
	client.addresses.see("203.0.113.9")
	expect(t, codesOf(client.Verify(context.Background())) == "", "two addresses", nil)
}
