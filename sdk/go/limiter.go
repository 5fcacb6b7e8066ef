package catraca

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Limiter has the methods of a storage-backed limiter with a window and a block: Allow, Reset and
// Close. It replaces such a limiter without changes in its callers. Keys have the form
// "attribute:value", such as "ip:198.51.100.7" or "token:abc123".
type Limiter struct {
	client *Client
	// usual decides for keys whose attribute is not in the table.
	usual  keyRule
	rules  map[string]keyRule
	warned sync.Map
}

type keyRule struct {
	gate   string
	policy string
}

// LimiterOption changes a limiter.
type LimiterOption func(*Limiter)

// KeysOf lets keys of an attribute use a gate and a policy of their own.
func KeysOf(attribute, gate, policy string) LimiterOption {
	return func(l *Limiter) { l.rules[attribute] = keyRule{gate: gate, policy: policy} }
}

// NewLimiter returns a limiter over a gate. Reset acts on the policy, and needs a key of the role
// admin. With keys of several attributes, KeysOf names the gate and the policy of the others.
func NewLimiter(client *Client, gate, policy string, options ...LimiterOption) *Limiter {
	limiter := &Limiter{
		client: client,
		usual:  keyRule{gate: gate, policy: policy},
		rules:  map[string]keyRule{},
	}
	for _, option := range options {
		option(limiter)
	}
	return limiter
}

type attributesKey struct{}

// WithAttributes returns a context whose calls of Allow and Reset have these attributes beside that
// of the key. With the address of the caller, a token that the catalog does not know counts for
// that address; without it, it is denied.
func WithAttributes(ctx context.Context, attributes Subject) context.Context {
	return context.WithValue(ctx, attributesKey{}, attributes)
}

// Allow checks a key. The catalog of the server decides the limit, the window and the block: the
// arguments are those of the replaced limiter, and a limit that differs from the catalog's is
// logged once. An unavailable server is an error in every fail mode of the client, with allowed
// false, as the error of a storage: callers of such a limiter have their own rule for it. What a
// caller sends is never an error, because many programs let requests pass on errors: a key that the
// server refuses, such as an unknown token without an address, is denied and logged once.
func (l *Limiter) Allow(
	ctx context.Context, key string, limit int, window, blockDuration time.Duration,
) (allowed bool, remaining int, resetTime time.Time, err error) {
	rule, subject, err := l.read(ctx, key)
	if err != nil {
		return false, 0, time.Time{}, err
	}
	decision, err := l.client.Check(ctx, rule.gate, subject, OnFailure(FailError))
	var problem *Problem
	if errors.As(err, &problem) && problem.Status == http.StatusBadRequest {
		l.warnOnce(problem.Code, "catraca: a key was refused and is denied",
			"gate", rule.gate, "code", problem.Code, "detail", problem.Detail)
		return false, 0, l.client.now(), nil
	}
	if err != nil {
		return false, 0, time.Time{}, err
	}
	l.compare(decision, limit)
	return decision.Allowed, int(max(decision.Remaining, 0)), l.client.now().Add(decision.ResetAfter), nil
}

// Reset clears the window and the block of a key.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	rule, subject, err := l.read(ctx, key)
	if err != nil {
		return err
	}
	fields := map[string]any{"policy": rule.policy, "subject": subject}
	var result struct{}
	if err := l.client.call(ctx, "/v1/reset", fields, &result, sendOnce); err != nil {
		return err
	}
	_, blockKey, err := checkCall{}.encode(rule.gate, subject)
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
	l.warnOnce(decision.Policy, "catraca: the program states another limit than the catalog, which decides",
		"policy", decision.Policy, "program", limit, "catalog", decision.Limit)
}

func (l *Limiter) warnOnce(about, message string, fields ...any) {
	if _, seen := l.warned.LoadOrStore(about, true); !seen {
		l.client.log.Warn(message, fields...)
	}
}

// read returns the rule of a key, and its attributes with those of the context.
func (l *Limiter) read(ctx context.Context, key string) (keyRule, Subject, error) {
	attribute, value, found := strings.Cut(key, ":")
	if !found || attribute == "" {
		return keyRule{}, nil, fmt.Errorf("catraca: key %q must have the form attribute:value", key)
	}
	subject := Subject{}
	if more, found := ctx.Value(attributesKey{}).(Subject); found {
		for name, value := range more {
			subject[name] = value
		}
	}
	subject[attribute] = value
	if rule, found := l.rules[attribute]; found {
		return rule, subject, nil
	}
	return l.usual, subject, nil
}
