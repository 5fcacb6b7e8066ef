package catraca

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Slot is a range of time in some calendars. It includes its start and not its end.
type Slot struct {
	Calendars      []string  `json:"calendars"`
	Start          time.Time `json:"start"`
	End            time.Time `json:"end"`
	BufferBeforeMs int64     `json:"buffer_before_ms"`
	BufferAfterMs  int64     `json:"buffer_after_ms"`
}

// HoldSlot holds a range of time in all calendars of the slot, or in none. A range that overlaps
// another holder's is a *TakenError. As Acquire, it is asked for again if the answer is lost.
func (c *Client) HoldSlot(ctx context.Context, slot Slot, options ...LockOption) (*Lease, error) {
	fields := map[string]any{
		"calendars":        slot.Calendars,
		"start":            slot.Start,
		"end":              slot.End,
		"buffer_before_ms": slot.BufferBeforeMs,
		"buffer_after_ms":  slot.BufferAfterMs,
	}
	return c.grant(ctx, "/v1/slots/hold", fields, options)
}

// HoldEndedError says that a hold had ended before it was confirmed.
type HoldEndedError struct {
	// State is "expired", "released" or "forced".
	State string `json:"state"`
	// StillFree: ConfirmSlot with reacquire would confirm it.
	StillFree bool `json:"still_free"`
}

func (e *HoldEndedError) Error() string {
	return "catraca: the hold of the slot has ended: " + e.State
}

// ConfirmSlot makes a held slot permanent, and updates the fence of the lease. With reacquire, a
// hold that has ended is taken again if the slot is still free. Otherwise the error is a
// *HoldEndedError, or a *TakenError. A second confirmation changes nothing, so ConfirmSlot is retried.
func (c *Client) ConfirmSlot(ctx context.Context, lease *Lease, reacquire bool) error {
	fields := map[string]any{"lease_id": lease.ID, "reacquire_if_free": reacquire}
	return c.changeSlot(ctx, "/v1/slots/confirm", lease, fields, mayRepeat)
}

// MoveSlot gives a slot another range in the same calendars, and updates its lease. If the range is
// taken, the old one is kept and the error is a *TakenError.
func (c *Client) MoveSlot(ctx context.Context, lease *Lease, start, end time.Time) error {
	fields := map[string]any{"lease_id": lease.ID, "start": start, "end": end}
	return c.changeSlot(ctx, "/v1/slots/move", lease, fields, sendOnce)
}

// CancelSlot frees a slot, held or confirmed, and returns whether this call freed it. It is retried,
// as Release.
func (c *Client) CancelSlot(ctx context.Context, lease *Lease) (bool, error) {
	return c.endLease(ctx, "/v1/slots/cancel", lease)
}

func (c *Client) changeSlot(
	ctx context.Context, path string, lease *Lease, fields map[string]any, repeat repetition,
) error {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	answer, err := c.exchange(ctx, path, fields, repeat)
	if err != nil {
		return err
	}
	switch answer.status {
	case http.StatusOK:
		var changed struct {
			Fence   int64 `json:"fence"`
			Version int64 `json:"version"`
			Slot    *Slot `json:"slot"`
		}
		if err := decode(answer.body, &changed); err != nil {
			return err
		}
		lease.Fence = changed.Fence
		lease.Version = changed.Version
		lease.Slot = changed.Slot
		return nil
	case http.StatusConflict:
		return conflictOf(answer)
	case http.StatusGone:
		ended := &HoldEndedError{}
		if decode(answer.body, ended) == nil && ended.State != "" {
			return ended
		}
	}
	return problemOf(answer)
}

// Calendar is the free and busy ranges of a calendar. They may change at once: only a hold reserves.
type Calendar struct {
	Available bool        `json:"available"`
	Free      []FreeRange `json:"free"`
	Busy      []BusyRange `json:"busy"`
	// Next is the start of the next request, if not all ranges fit in the answer.
	Next *time.Time `json:"next"`
}

// FreeRange is a range of time without a slot.
type FreeRange struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// BusyRange is a slot of some holder.
type BusyRange struct {
	Start     time.Time  `json:"start"`
	End       time.Time  `json:"end"`
	State     string     `json:"state"`
	Fence     int64      `json:"fence"`
	ExpiresAt *time.Time `json:"expires_at"`
}

// ReadCalendar lists the free and busy ranges of a calendar; an empty tenant is none.
func (c *Client) ReadCalendar(ctx context.Context, calendar, tenant string, from, to time.Time) (Calendar, error) {
	query := url.Values{"calendar": {calendar}, "from": {from.Format(time.RFC3339Nano)}, "to": {to.Format(time.RFC3339Nano)}}
	if tenant != "" {
		query.Set("tenant", tenant)
	}
	var view Calendar
	_, err := c.read(ctx, "/v1/slots", query, &view)
	return view, err
}

// read gets a JSON document, and the header of its response.
func (c *Client) read(ctx context.Context, path string, query url.Values, result any) (http.Header, error) {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	answer, err := c.get(ctx, path, query.Encode())
	if err != nil {
		return nil, unavailableError(err)
	}
	if answer.status != http.StatusOK {
		return nil, problemOf(answer)
	}
	return answer.header, decode(answer.body, result)
}
