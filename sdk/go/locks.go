package catraca

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Lease is a lock or a slot that this program holds.
type Lease struct {
	// ID proves that the lease is held. Do not show it to others.
	ID string `json:"lease_id"`
	// Fence rises with every grant. Send it with every write, and let the resource refuse a lower one.
	Fence          int64     `json:"fence"`
	Version        int64     `json:"version"`
	Keys           []string  `json:"keys"`
	Kind           string    `json:"kind"`
	Tenant         string    `json:"tenant"`
	TTLMs          int64     `json:"ttl_ms"`
	ExpiresAt      time.Time `json:"expires_at"`
	RenewableUntil time.Time `json:"renewable_until"`
	Durability     string    `json:"durability"`
	Slot           *Slot     `json:"slot"`
	// until is the end of the lease by the monotonic clock of this machine, counted from before the
	// request was sent: the lease does not end earlier on the server. If the request waited for the
	// lock, it is counted from the answer, until the first renewal, which is then sent at once.
	until time.Time
	// renewAt is a third of the TTL after the request was sent.
	renewAt time.Time
}

// TakenError says who holds the lock or the slot that was asked for.
type TakenError struct {
	Taken      string
	OwnerLabel string
	// RetryAfter is the time until the other lease ends; 0 if it is a confirmed slot.
	RetryAfter time.Duration
	Waiters    int64
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("catraca: %q is taken by another holder (%s)", e.Taken, e.OwnerLabel)
}

// LockOption changes an acquire or a hold. The defaults are those of the kind, in the catalog.
type LockOption func(map[string]any)

// Kind chooses the settings of the lease, such as "payment".
func Kind(kind string) LockOption { return func(fields map[string]any) { fields["kind"] = kind } }

// Tenant is part of the name.
func Tenant(tenant string) LockOption {
	return func(fields map[string]any) { fields["tenant"] = tenant }
}

// TTL is the time after which the lease ends unless it is renewed.
func TTL(ttl time.Duration) LockOption {
	return func(fields map[string]any) { fields["ttl_ms"] = ttl.Milliseconds() }
}

// Wait waits for a taken name, for up to 30 s, in order of arrival.
func Wait(wait time.Duration) LockOption {
	return func(fields map[string]any) { fields["wait_ms"] = wait.Milliseconds() }
}

// MaxHold is the longest time that renewals can extend the lease to.
func MaxHold(hold time.Duration) LockOption {
	return func(fields map[string]any) { fields["max_hold_ms"] = hold.Milliseconds() }
}

// OwnerLabel is shown to other callers and to operators.
func OwnerLabel(label string) LockOption {
	return func(fields map[string]any) { fields["owner_label"] = label }
}

// RequestID makes an acquire repeatable across restarts of this program. The default is random.
func RequestID(id string) LockOption {
	return func(fields map[string]any) { fields["request_id"] = id }
}

// Acquire takes a lock. A lock that another caller holds is a *TakenError. The request has an id, so
// a lost answer is asked for again and gives the same lease.
func (c *Client) Acquire(ctx context.Context, name string, options ...LockOption) (*Lease, error) {
	return c.grant(ctx, "/v1/locks/acquire", map[string]any{"key": name}, options)
}

// AcquireAll takes up to 16 locks, all or none.
func (c *Client) AcquireAll(ctx context.Context, names []string, options ...LockOption) (*Lease, error) {
	return c.grant(ctx, "/v1/locks/acquire", map[string]any{"keys": names}, options)
}

func (c *Client) grant(ctx context.Context, path string, fields map[string]any, options []LockOption) (*Lease, error) {
	fields["request_id"] = randomID()
	for _, option := range options {
		option(fields)
	}
	wait, _ := fields["wait_ms"].(int64)
	ctx, cancel := c.withTimeout(ctx, millis(wait))
	defer cancel()
	asked := time.Now()
	answer, err := c.exchange(ctx, path, fields, mayRepeat)
	if err != nil {
		return nil, err
	}
	switch answer.status {
	case http.StatusOK:
		lease := &Lease{}
		if err := decode(answer.body, lease); err != nil {
			return nil, err
		}
		lease.measure(asked)
		if answered := time.Now(); wait > 0 && lease.renewAt.Before(answered) {
			lease.until = answered.Add(millis(lease.TTLMs))
		}
		return lease, nil
	case http.StatusConflict:
		return nil, conflictOf(answer)
	}
	return nil, problemOf(answer)
}

// Renew extends a lease before it ends; a TTL of 0 is that of its kind. A lease that has ended is a
// *Problem with the status 409 or 410. A second renewal extends from its own time, so Renew is
// retried.
func (c *Client) Renew(ctx context.Context, lease *Lease, ttl time.Duration) error {
	fields := map[string]any{"lease_id": lease.ID}
	if ttl > 0 {
		fields["ttl_ms"] = ttl.Milliseconds()
	}
	asked := time.Now()
	var renewed struct {
		TTLMs     int64     `json:"ttl_ms"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	if err := c.call(ctx, "/v1/locks/renew", fields, &renewed, mayRepeat); err != nil {
		return err
	}
	lease.TTLMs = renewed.TTLMs
	lease.ExpiresAt = renewed.ExpiresAt
	lease.measure(asked)
	return nil
}

// measure sets the times of a lease that was granted or renewed by a request sent at this time.
func (l *Lease) measure(asked time.Time) {
	ttl := millis(l.TTLMs)
	l.until = asked.Add(ttl)
	l.renewAt = asked.Add(ttl / 3)
}

// Release ends a lease, and returns whether this call ended it. It is retried; if the answer to the
// first attempt was lost, the second finds the lease ended and returns false. A release that fails
// can be ignored: the lease ends with its TTL.
func (c *Client) Release(ctx context.Context, lease *Lease) (bool, error) {
	return c.endLease(ctx, "/v1/locks/release", lease)
}

func (c *Client) endLease(ctx context.Context, path string, lease *Lease) (bool, error) {
	var ended struct {
		Released bool `json:"released"`
	}
	err := c.call(ctx, path, map[string]any{"lease_id": lease.ID}, &ended, mayRepeat)
	return ended.Released, err
}

// conflictOf reads a 409: the other holder, or a problem such as stale-version.
func conflictOf(answer response) error {
	var conflict struct {
		Conflict     bool   `json:"conflict"`
		Taken        string `json:"taken"`
		RetryAfterMs int64  `json:"retry_after_ms"`
		Waiters      int64  `json:"waiters"`
		Holder       struct {
			OwnerLabel string `json:"owner_label"`
		} `json:"holder"`
	}
	if json.Unmarshal(answer.body, &conflict) != nil || !conflict.Conflict {
		return problemOf(answer)
	}
	return &TakenError{
		Taken:      conflict.Taken,
		OwnerLabel: conflict.Holder.OwnerLabel,
		RetryAfter: millis(conflict.RetryAfterMs),
		Waiters:    conflict.Waiters,
	}
}

func randomID() string {
	var bytes [16]byte
	// Read never fails on a supported system, and ends the program if it does.
	_, _ = rand.Read(bytes[:])
	return hex.EncodeToString(bytes[:])
}
