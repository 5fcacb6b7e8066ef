package catraca

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"catraca-go/catracatest"
)

// storage is what callers of a storage-backed limiter use; Limiter replaces its implementation.
type storage interface {
	Allow(ctx context.Context, key string, limit int, window, block time.Duration) (bool, int, time.Time, error)
	Reset(ctx context.Context, key string) error
	Close() error
}

func startWindowBlock(t *testing.T) (*catracatest.Server, storage) {
	t.Helper()
	catalog, err := os.ReadFile("../../presets/window-block/catalog.toml")
	expect(t, err == nil, "catalog", err)
	t.Setenv("RATE_LIMIT_WINDOW_SECONDS", "60")
	server := catracatest.Start(t, string(catalog))
	return server, NewLimiter(newTestClient(t, server.URL), "ip", "ip")
}

// covers: 002-16, 002-17, 002-18, 002-19, 002-20, 002-22, 002-24, 002-27, 002-28, X-32
func TestTheLimiterAllowsBlocksAndResets(t *testing.T) {
	_, limiter := startWindowBlock(t)
	ctx := context.Background()
	allow := func() (bool, int, time.Duration) {
		allowed, remaining, resetTime, err := limiter.Allow(ctx, "ip:198.51.100.1", 10, time.Minute, 5*time.Minute)
		expect(t, err == nil, "allow", err)
		return allowed, remaining, time.Until(resetTime)
	}
	near := func(found, wanted time.Duration) bool { return wanted-10*time.Second < found && found <= wanted }
	for wanted := 9; wanted >= 0; wanted-- {
		allowed, remaining, reset := allow()
		expect(t, allowed && remaining == wanted && near(reset, time.Minute), "allowed", remaining)
	}
	for range 2 {
		allowed, remaining, reset := allow()
		expect(t, !allowed && remaining == 0 && near(reset, 5*time.Minute), "blocked", reset)
	}
	expect(t, limiter.Reset(ctx, "ip:198.51.100.1") == nil, "reset", nil)
	allowed, remaining, _ := allow()
	expect(t, allowed && remaining == 9, "after the reset", remaining)
	expect(t, limiter.Close() == nil, "close", nil)
}

// covers: 002-29
func TestAnUnavailableServerIsAnErrorOfTheLimiterAndNoDenial(t *testing.T) {
	server, _ := startWindowBlock(t)
	limiter := NewLimiter(newTestClient(t, server.URL, WithFailMode(FailOpen)), "ip", "ip")
	server.Kill()
	allowed, remaining, _, err := limiter.Allow(context.Background(), "ip:198.51.100.1", 10, time.Minute, time.Minute)
	expect(t, !allowed && remaining == 0 && errors.Is(err, ErrUnavailable), "error", err)
	expect(t, errors.Is(limiter.Reset(context.Background(), "ip:198.51.100.1"), ErrUnavailable), "reset", nil)
}

func TestAKeyWithoutAnAttributeIsAnError(t *testing.T) {
	_, limiter := startWindowBlock(t)
	for _, key := range []string{"", "198.51.100.1", ":x"} {
		_, _, _, err := limiter.Allow(context.Background(), key, 10, time.Minute, time.Minute)
		expect(t, err != nil && limiter.Reset(context.Background(), key) != nil, key, err)
	}
}

// An error would let the request pass in many programs, and callers choose the values.
func TestAValueThatTheServerRefusesIsDeniedAndNoError(t *testing.T) {
	_, limiter := startWindowBlock(t)
	for _, key := range []string{"ip:", "ip:no address", "ip:" + strings.Repeat("1", 5000)} {
		allowed, remaining, resetTime, err := limiter.Allow(context.Background(), key, 10, time.Minute, time.Minute)
		expect(t, !allowed && remaining == 0 && !resetTime.IsZero() && err == nil, key[:min(len(key), 20)], err)
	}
}

// covers: 002-10, 002-30, 002-31, 002-32, B-42
func TestKeysOfTokensHaveTheirOwnGateAndUnknownOnesCountForTheAddress(t *testing.T) {
	server, _ := startWindowBlock(t)
	limiter := storage(NewLimiter(newTestClient(t, server.URL), "ip", "ip", KeysOf("token", "token", "token")))
	ctx := context.Background()
	allow := func(ctx context.Context, key string) (bool, int) {
		allowed, remaining, _, err := limiter.Allow(ctx, key, 10, time.Minute, 5*time.Minute)
		expect(t, err == nil, key, err)
		return allowed, remaining
	}
	allowed, remaining := allow(ctx, "token:abc123")
	expect(t, allowed && remaining == 99, "a partner's token", remaining)
	for range 6 {
		allowed, remaining = allow(ctx, "token:xyz789")
	}
	expect(t, !allowed && remaining == 0, "the sixth of a trial's token", remaining)
	expect(t, limiter.Reset(ctx, "token:xyz789") == nil, "reset", nil)
	allowed, remaining = allow(ctx, "token:xyz789")
	expect(t, allowed && remaining == 4, "after the reset", remaining)
	allowed, _ = allow(ctx, "token:invented")
	expect(t, !allowed, "an unknown token without an address is denied", allowed)
	fromAddress := WithAttributes(ctx, Subject{"ip": "198.51.100.9"})
	for number := range 10 {
		allowed, remaining = allow(fromAddress, "token:invented"+strconv.Itoa(number))
		expect(t, allowed && remaining == 9-number, "another unknown token", remaining)
	}
	allowed, _ = allow(fromAddress, "token:invented-too")
	expect(t, !allowed, "the eleventh unknown token of an address", allowed)
	allowed, _ = allow(ctx, "ip:198.51.100.9")
	expect(t, !allowed, "and the address itself", allowed)
	allowed, _ = allow(fromAddress, "token:abc123")
	expect(t, allowed, "a known token of that address", allowed)
}
