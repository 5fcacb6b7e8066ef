package catraca

import (
	"context"
	"encoding/json"
	"time"
)

// Outcome is what happened after an allowed check, as far as prices and ban rules read it.
type Outcome struct {
	Status int `json:"status,omitempty"`
	// BodyText is the body of the response, if a ban rule reads it.
	BodyText string            `json:"body_text,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	// Cost is the amount, for policies whose cost is "reported".
	Cost *int64 `json:"cost,omitempty"`
}

// Settlement is the result of a settle.
type Settlement struct {
	// State is "settled", "again" (an earlier call applied an outcome) or "expired".
	State    string       `json:"state"`
	Durable  *bool        `json:"durable"`
	Policies []SettledRow `json:"policies"`
}

// SettledRow is one policy's part of a settlement.
type SettledRow struct {
	Policy string `json:"policy"`
	// Attribute is the attribute that the row counts, if the policy counts each of several.
	Attribute    string     `json:"attribute"`
	Charged      int64      `json:"charged"`
	Balance      *int64     `json:"balance"`
	BlockedUntil *time.Time `json:"blocked_until"`
	BlockedBy    string     `json:"blocked_by"`
	Reason       string     `json:"reason"`
	Status       int        `json:"status"`
	Message      string     `json:"message"`
}

// Settle reports the outcome of a check by the ticket of its decision. A repeated settle returns the
// result of the first, so Settle is retried.
func (c *Client) Settle(ctx context.Context, ticket string, outcome Outcome) (Settlement, error) {
	return c.settle(ctx, map[string]any{"ticket": ticket, "outcome": outcome})
}

// SettleRef reports the outcome of a check that was remembered by Ref.
func (c *Client) SettleRef(ctx context.Context, ref string, subject Subject, outcome Outcome) (Settlement, error) {
	return c.settle(ctx, map[string]any{"ref": ref, "subject": subject, "outcome": outcome})
}

func (c *Client) settle(ctx context.Context, fields map[string]any) (Settlement, error) {
	var settlement Settlement
	err := c.call(ctx, "/v1/settle", fields, &settlement, mayRepeat)
	return settlement, err
}

// Credited is the result of a credit.
type Credited struct {
	Applied bool `json:"applied"`
	// Reason says why the credit was not applied.
	Reason   string           `json:"reason"`
	Policies []CreditedBucket `json:"policies"`
}

// CreditedBucket is the amount that one bucket was credited.
type CreditedBucket struct {
	Policy string `json:"policy"`
	Amount int64  `json:"amount"`
}

// Credit reports a late event, such as a payment, that returns units of the check with this ref.
func (c *Client) Credit(ctx context.Context, ref, event string, subject Subject) (Credited, error) {
	var credited Credited
	fields := map[string]any{"ref": ref, "event": event, "subject": subject}
	err := c.call(ctx, "/v1/credit", fields, &credited, sendOnce)
	return credited, err
}

type repetition bool

const (
	sendOnce  repetition = false
	mayRepeat repetition = true
)

// call sends fields as JSON, and reads the JSON of a success into result. Any other answer is a
// *Problem, and no answer is an ErrUnavailable.
func (c *Client) call(ctx context.Context, path string, fields, result any, repeat repetition) error {
	ctx, cancel := c.withTimeout(ctx, 0)
	defer cancel()
	answer, err := c.exchange(ctx, path, fields, repeat)
	if err != nil {
		return err
	}
	if answer.status != 200 {
		return problemOf(answer)
	}
	return decode(answer.body, result)
}

// exchange sends fields as JSON and returns the answer, of any status.
func (c *Client) exchange(ctx context.Context, path string, fields any, repeat repetition) (response, error) {
	body, err := json.Marshal(fields)
	if err != nil {
		return response{}, err
	}
	send := func() (response, error) { return c.post(ctx, path, body) }
	var answer response
	if repeat == mayRepeat {
		answer, err = c.retry(ctx, send)
	} else {
		answer, err = send()
	}
	if err != nil {
		return response{}, unavailableError(err)
	}
	return answer, nil
}

func decode(body []byte, result any) error {
	if err := json.Unmarshal(body, result); err != nil {
		return unavailableError(err)
	}
	return nil
}
