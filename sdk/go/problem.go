package catraca

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// ErrUnavailable means that the server did not answer in time, or answered that it cannot serve.
var ErrUnavailable = errors.New("catraca: unavailable")

// Problem is a refusal of the server: the call is invalid, or the key may not make it.
type Problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// RetryAfter is how long the server asks to wait; 0 if it does not ask.
	RetryAfter time.Duration `json:"-"`
}

func (p *Problem) Error() string {
	return fmt.Sprintf("catraca: %s: %s (status %d)", p.Code, p.Detail, p.Status)
}

// Unwrap makes a problem of the server, and not of the call, an ErrUnavailable.
func (p *Problem) Unwrap() error {
	if isUnavailable(p.Status) {
		return ErrUnavailable
	}
	return nil
}

// isUnavailable reports whether a status says that the server, or a proxy in front of it, cannot
// answer now. Any other status but 200 is a mistake in the call.
func isUnavailable(status int) bool {
	return status >= http.StatusInternalServerError || status == http.StatusRequestTimeout ||
		status == http.StatusTooManyRequests
}

// problemOf reads the problem of a response that is no success.
func problemOf(answer response) *Problem {
	problem := &Problem{}
	if json.Unmarshal(answer.body, problem) != nil || problem.Code == "" {
		problem = &Problem{Code: "unreadable-response", Detail: http.StatusText(answer.status)}
	}
	problem.Status = answer.status
	if seconds, err := strconv.Atoi(answer.header.Get("Retry-After")); err == nil && seconds > 0 {
		problem.RetryAfter = time.Duration(seconds) * time.Second
	}
	return problem
}

// unavailableError wraps the cause of a call without an answer.
func unavailableError(cause error) error {
	return fmt.Errorf("%w: %w", ErrUnavailable, cause)
}
