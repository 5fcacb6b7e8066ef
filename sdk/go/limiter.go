package catraca

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Limiter has the methods of a storage-backed limiter with a window and a block: Allow, Reset and
// Close. It replaces such a limiter without changes in its callers. Keys have the form
// "attribute:value", such as "ip:198.51.100.7" or "token:abc123".
type Limiter struct {
	client *Client
	gate   string
	policy string
	warned sync.Map
}

// NewLimiter returns a limiter over a gate. Reset acts on the policy, and needs a key of the role
// admin.
func NewLimiter(client *Client, gate, policy string) *Limiter {
	return &Limiter{client: client, gate: gate, policy: policy}
}

// Allow checks a key. The catalog of the server decides the limit, the window and the block: the
// arguments are those of the replaced limiter, and a limit that differs from the catalog's is
// logged once. An unavailable server is an error in every fail mode of the client, with allowed
// false, as the error of a storage: callers of such a limiter have their own rule for it.
func (l *Limiter) Allow(
	ctx context.Context, key string, limit int, window, blockDuration time.Duration,
) (allowed bool, remaining int, resetTime time.Time, err error) {
	subject, err := parseKey(key)
	if err != nil {
		return false, 0, time.Time{}, err
	}
	decision, err := l.client.Check(ctx, l.gate, subject, OnFailure(FailError))
	if err != nil {
		return false, 0, time.Time{}, err
	}
	l.compare(decision, limit)
	return decision.Allowed, int(max(decision.Remaining, 0)), l.client.now().Add(decision.ResetAfter), nil
}

// Reset clears the window and the block of a key.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	subject, err := parseKey(key)
	if err != nil {
		return err
	}
	fields := map[string]any{"policy": l.policy, "subject": subject}
	var result struct{}
	if err := l.client.call(ctx, "/v1/reset", fields, &result, sendOnce); err != nil {
		return err
	}
	_, blockKey, err := checkCall{}.encode(l.gate, subject)
	l.client.blocks.forget(blockKey)
	return err
}

// Close closes the idle connections of the client.
func (l *Limiter) Close() error {
	return l.client.Close()
}

// compare logs once for each policy that its limit is not the one that the program states.
func (l *Limiter) compare(decision Decision, limit int) {
	if decision.Limit < 0 || decision.Limit == int64(limit) {
		return
	}
	if _, seen := l.warned.LoadOrStore(decision.Policy, true); !seen {
		l.client.log.Warn("catraca: the program states another limit than the catalog, which decides",
			"policy", decision.Policy, "program", limit, "catalog", decision.Limit)
	}
}

func parseKey(key string) (Subject, error) {
	attribute, value, found := strings.Cut(key, ":")
	if !found || attribute == "" || value == "" {
		return nil, fmt.Errorf("catraca: key %q must have the form attribute:value", key)
	}
	return Subject{attribute: value}, nil
}
