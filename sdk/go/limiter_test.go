package catraca

import (
	"context"
	"errors"
	"os"
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

// covers: 002-16, 002-17, 002-18, 002-19, 002-20, 002-22, 002-24, 002-27, 002-28
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
	for _, key := range []string{"", "198.51.100.1", ":x", "ip:"} {
		_, _, _, err := limiter.Allow(context.Background(), key, 10, time.Minute, time.Minute)
		expect(t, err != nil && limiter.Reset(context.Background(), key) != nil, key, err)
	}
}
