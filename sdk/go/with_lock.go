package catraca

import (
	"context"
	"errors"
	"time"
)

// ErrLeaseLost is the cause of the canceled context if a lease ended while it was in use.
var ErrLeaseLost = errors.New("catraca: the lease was lost")

// WithLock runs work while it holds the lock, and releases the lock afterwards, also if work panics.
// The lease is renewed after each third of its TTL. If it is lost, because the server says so or
// because no renewal succeeded before its end, the context of work is canceled with ErrLeaseLost,
// and WithLock returns an ErrLeaseLost. A release that fails does not change the result: it is logged,
// and the lock ends with its TTL.
//
// Send lease.Fence with every write: a paused program can go on writing after its lease has ended.
func (c *Client) WithLock(
	ctx context.Context, name string, work func(ctx context.Context, lease *Lease) error, options ...LockOption,
) error {
	lease, err := c.Acquire(ctx, name, options...)
	if err != nil {
		return err
	}
	workCtx, cancel := context.WithCancelCause(ctx)
	// The renewer works on a copy, because work reads the lease at the same time.
	renewer := &leaseRenewer{client: c, lease: *lease, lose: cancel, done: make(chan struct{})}
	go renewer.run(workCtx)
	defer func() {
		cancel(nil)
		<-renewer.done
		// The caller may have canceled its context; the lock is released in any case.
		releaseCtx := context.WithoutCancel(ctx)
		if _, err := c.Release(releaseCtx, lease); err != nil {
			c.log.WarnContext(releaseCtx, "catraca: a lock was not released; it ends with its TTL",
				"lock", name, "fence", lease.Fence, "error", err)
		}
	}()
	err = work(workCtx, lease)
	if errors.Is(context.Cause(workCtx), ErrLeaseLost) {
		return errors.Join(ErrLeaseLost, err)
	}
	return err
}

// leaseRenewer renews one lease until its context ends.
type leaseRenewer struct {
	client *Client
	lease  Lease
	lose   context.CancelCauseFunc
	done   chan struct{}
}

func (r *leaseRenewer) run(ctx context.Context) {
	defer close(r.done)
	ttl := millis(r.lease.TTLMs)
	pause := time.Until(r.lease.renewAt)
	for {
		left := time.Until(r.lease.until)
		if left <= 0 {
			r.lose(ErrLeaseLost)
			return
		}
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return
		}
		pause = r.renew(ctx, ttl)
	}
}

// renew makes one attempt before the end of the lease, and returns the pause until the next.
func (r *leaseRenewer) renew(ctx context.Context, ttl time.Duration) time.Duration {
	ctx, cancel := context.WithDeadline(ctx, r.lease.until)
	defer cancel()
	err := r.client.Renew(ctx, &r.lease, ttl)
	var problem *Problem
	switch {
	case err == nil:
		return time.Until(r.lease.renewAt)
	case errors.As(err, &problem) && !isUnavailable(problem.Status):
		// The server says that the lease has ended, was forced, or cannot be renewed further.
		r.onRefusal(problem)
	}
	// The server is unavailable: try again soon, as the lease may still be renewed.
	return ttl / 10
}

// onRefusal ends the lease now, except if it has only reached its maximum hold: it is valid to its end.
func (r *leaseRenewer) onRefusal(problem *Problem) {
	if problem.Code != "max-hold-reached" {
		r.lease.until = time.Time{}
	}
}
