package catraca

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"catraca-go/catracatest"
)

func TestWithLockExcludesRenewsAndReleases(t *testing.T) {
	_, client := startWithClient(t)
	ctx := context.Background()
	var first int64
	err := client.WithLock(ctx, "order-1", func(ctx context.Context, lease *Lease) error {
		first = lease.Fence
		// Longer than the TTL of the kind: only renewals keep the lock.
		for until := time.Now().Add(1500 * time.Millisecond); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
			_, err := client.Acquire(ctx, "order-1", Kind("short"))
			var taken *TakenError
			expect(t, errors.As(err, &taken) && taken.OwnerLabel == "worker 3", "not taken", err)
			expect(t, ctx.Err() == nil, "canceled", context.Cause(ctx))
		}
		return nil
	}, Kind("short"), OwnerLabel("worker 3"))
	expect(t, err == nil && first > 0, "with lock", err)
	lease, err := client.Acquire(ctx, "order-1", Kind("short"))
	expect(t, err == nil && lease.Fence > first, "the fence rises", err)
}

func TestWithLockReturnsTheErrorOfTheWorkAndReleasesAfterAPanic(t *testing.T) {
	_, client := startWithClient(t)
	ctx := context.Background()
	failure := errors.New("out of paper")
	err := client.WithLock(ctx, "printer", func(context.Context, *Lease) error { return failure })
	expect(t, err == failure, "error", err)
	func() {
		defer func() { expect(t, recover() == "stop", "panic", nil) }()
		_ = client.WithLock(ctx, "printer", func(context.Context, *Lease) error { panic("stop") })
	}()
	_, err = client.Acquire(ctx, "printer")
	expect(t, err == nil, "not released", err)
}

// refuseReleases is a transport on which releases fail.
type refuseReleases struct{ http.RoundTripper }

func (r refuseReleases) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Path == "/v1/locks/release" {
		return nil, errors.New("connection reset")
	}
	return r.RoundTripper.RoundTrip(request)
}

// covers: B-67
func TestAReleaseThatFailsIsLoggedAndChangesNoResult(t *testing.T) {
	server := startServer(t)
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	client := newTestClient(t, server.URL, WithLogger(logger), WithTransport(refuseReleases{newTransport()}))
	ctx := context.Background()
	err := client.WithLock(ctx, "order-1", func(context.Context, *Lease) error { return nil })
	expect(t, err == nil, "the work succeeded", err)
	line := log.String()
	expect(t, strings.Contains(line, "level=WARN") && strings.Contains(line, "was not released"), "log", line)
	expect(t, strings.Contains(line, "lock=order-1") && strings.Contains(line, "connection reset"), "log", line)
	failure := errors.New("out of paper")
	err = client.WithLock(ctx, "printer", func(context.Context, *Lease) error { return failure })
	expect(t, err == failure && strings.Contains(log.String(), "lock=printer"), "error", err)
}

func TestWithLockCancelsTheWorkWhenTheLeaseIsLost(t *testing.T) {
	endings := map[string]func(t *testing.T, server *catracatest.Server, client *Client, lease *Lease){
		"released by its id elsewhere": func(t *testing.T, _ *catracatest.Server, client *Client, lease *Lease) {
			released, err := client.Release(context.Background(), lease)
			expect(t, err == nil && released, "release", err)
		},
		"the server is killed": func(_ *testing.T, server *catracatest.Server, _ *Client, _ *Lease) {
			server.Kill()
		},
	}
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			server, client := startWithClient(t)
			err := client.WithLock(context.Background(), "order-1", func(ctx context.Context, lease *Lease) error {
				end(t, server, client, lease)
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Second):
					t.Error("the context was not canceled")
				}
				expect(t, errors.Is(context.Cause(ctx), ErrLeaseLost), "cause", context.Cause(ctx))
				return ctx.Err()
			}, Kind("short"))
			expect(t, errors.Is(err, ErrLeaseLost) && errors.Is(err, context.Canceled), "error", err)
		})
	}
}

func TestALostLeaseIsNoticedBeforeAnotherHolderCanHaveIt(t *testing.T) {
	server, client := startWithClient(t)
	asked := time.Now()
	var lost time.Duration
	err := client.WithLock(context.Background(), "order-1", func(ctx context.Context, _ *Lease) error {
		server.Kill()
		<-ctx.Done()
		lost = time.Since(asked)
		return nil
	}, TTL(time.Second))
	expect(t, errors.Is(err, ErrLeaseLost), "error", err)
	// The lease was granted after it was asked for, so it lasts at least as long on the server.
	expect(t, lost > 500*time.Millisecond && lost < 5*time.Second, "canceled after", lost)
}

func TestAcquireAllWaitsAndRenews(t *testing.T) {
	_, client := startWithClient(t)
	ctx := context.Background()
	held, err := client.AcquireAll(ctx, []string{"a", "b"}, Tenant("t1"), TTL(300*time.Millisecond))
	expect(t, err == nil && len(held.Keys) == 2, "all", err)
	before := held.ExpiresAt
	expect(t, client.Renew(ctx, held, 400*time.Millisecond) == nil && held.ExpiresAt.After(before), "renew", held)
	waited, err := client.Acquire(ctx, "b", Wait(20*time.Second), Tenant("t1"), RequestID("r-1"))
	expect(t, err == nil && waited.Fence > held.Fence, "wait", err)
	expectProblem(t, client.Renew(ctx, held, 0), "lease-expired")
}

// The request waits longer than the TTL of the lease that it then gets.
func TestALeaseIsKeptAfterALongWait(t *testing.T) {
	_, client := startWithClient(t)
	ctx := context.Background()
	_, err := client.Acquire(ctx, "b", TTL(time.Second))
	expect(t, err == nil, "acquire", err)
	err = client.WithLock(ctx, "b", func(ctx context.Context, _ *Lease) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(900 * time.Millisecond):
			return nil
		}
	}, TTL(300*time.Millisecond), Wait(20*time.Second))
	expect(t, err == nil, "kept for three TTLs", err)
}

func TestSlotsAreHeldConfirmedMovedAndCanceled(t *testing.T) {
	_, client := startWithClient(t)
	ctx := context.Background()
	ten := time.Date(2030, 1, 7, 10, 0, 0, 0, time.UTC)
	slot := Slot{Calendars: []string{"ana"}, Start: ten, End: ten.Add(time.Hour)}
	lease, err := client.HoldSlot(ctx, slot)
	expect(t, err == nil && lease.Slot.Start.Equal(ten), "hold", err)
	_, err = client.HoldSlot(ctx, slot)
	var taken *TakenError
	expect(t, errors.As(err, &taken) && taken.Taken == "ana", "overlap", err)
	expect(t, client.ConfirmSlot(ctx, lease, false) == nil, "confirm", nil)
	fence := lease.Fence
	err = client.MoveSlot(ctx, lease, ten.Add(2*time.Hour), ten.Add(3*time.Hour))
	expect(t, err == nil && lease.Fence > fence && lease.Slot.Start.Hour() == 12, "move", err)
	view, err := client.ReadCalendar(ctx, "ana", "", ten, ten.Add(4*time.Hour))
	expect(t, err == nil && len(view.Busy) == 1 && view.Busy[0].State == "confirmed", "calendar", view)
	canceled, err := client.CancelSlot(ctx, lease)
	expect(t, err == nil && canceled, "cancel", err)
	ended := &HoldEndedError{}
	expect(t, errors.As(client.ConfirmSlot(ctx, lease, false), &ended) && ended.StillFree, "ended", ended)
}
