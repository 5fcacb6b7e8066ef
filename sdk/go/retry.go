package catraca

import (
	"context"
	"math/rand/v2"
	"time"
)

// retryPolicy repeats calls that have the same effect however often they are sent.
type retryPolicy struct {
	attempts int
	// first is the longest pause before the second attempt; each further pause may be twice as long.
	first time.Duration
}

var defaultRetries = retryPolicy{attempts: 3, first: 25 * time.Millisecond}

// retry sends a call until the server answers, at most three times and within the deadline of the
// context. Only for calls that may be repeated: peek, settle, acquires and holds with a request id,
// and the calls about a lease except a move.
func (c *Client) retry(ctx context.Context, send func() (response, error)) (response, error) {
	pause := c.retries.first
	for attempt := 1; ; attempt++ {
		answer, err := send()
		isAnswer := err == nil && !isUnavailable(answer.status)
		if isAnswer || attempt == c.retries.attempts || ctx.Err() != nil {
			return answer, err
		}
		wait := rand.N(pause) + 1
		if err == nil {
			wait += problemOf(answer).RetryAfter
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
			return answer, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return answer, err
		}
		pause *= 2
	}
}
