package catraca

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// structuredIntegerMax is the largest integer of a structured field (RFC 9651).
const structuredIntegerMax = 999_999_999_999_999

// WriteHeaders sets RateLimit-Policy and RateLimit from every enforced policy of a decision that
// counts, Retry-After if the request is denied and waiting helps, and Catraca-Degraded.
func WriteHeaders(header http.Header, decision Decision) {
	var policies, limits []string
	// When a block or a ban without a limit denies, rows with room are left out: a client that reads
	// r > 0 would retry at once.
	allRows := decision.Allowed || decision.Limit >= 0
	for _, row := range decision.Policies {
		if row.Mode != "enforce" {
			continue
		}
		for _, item := range quotaItems(row) {
			policies = append(policies, item.policy())
			if allRows || !row.Allowed {
				limits = append(limits, item.limitText())
			}
		}
	}
	if len(policies) > 0 {
		header.Set("RateLimit-Policy", strings.Join(policies, ", "))
	}
	if len(limits) > 0 {
		header.Set("RateLimit", strings.Join(limits, ", "))
	}
	if seconds := decision.RetryAfterSeconds(); seconds > 0 {
		header.Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	if decision.Degraded {
		header.Set("Catraca-Degraded", "?1")
	}
}

// RetryAfterSeconds is the value of Retry-After: whole seconds, rounded up; 0 if the request is
// allowed or waiting does not help.
func (d Decision) RetryAfterSeconds() int64 {
	if d.Allowed {
		return 0
	}
	return ceilSeconds(d.RetryAfter)
}

// StatusCode is the HTTP status for a denied request: 403 on the blocklist, 400 if an attribute is
// missing, 503 if the server or its store is unavailable, that of the ban if it has one, and
// otherwise 429. It is 200 for an allowed request.
func (d Decision) StatusCode() int {
	switch {
	case d.Allowed:
		return http.StatusOK
	case d.Reason == ReasonBlocklisted:
		return http.StatusForbidden
	case d.Reason == ReasonMissing:
		return http.StatusBadRequest
	case d.Reason == ReasonUnavailable:
		return http.StatusServiceUnavailable
	case d.Status != 0:
		return d.Status
	}
	return http.StatusTooManyRequests
}

// WriteDenial answers a denied request with its status and a body of application/problem+json.
func WriteDenial(w http.ResponseWriter, _ *http.Request, decision Decision) {
	detail := decision.Message
	if detail == "" {
		detail = "the request was denied: " + string(decision.Reason)
	}
	writeProblem(w, decision.StatusCode(), string(decision.Reason), detail)
}

// writeUnchecked answers a request that was not checked, because the server did not answer.
func writeUnchecked(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	writeFields(w, http.StatusServiceUnavailable, map[string]any{
		"code": "limiter-failed", "reason": ReasonUnavailable,
		"detail": "the request was not checked: the rate limiter did not answer",
	})
}

func writeProblem(w http.ResponseWriter, status int, code, detail string) {
	writeFields(w, status, map[string]any{"code": code, "detail": detail})
}

// writeFields answers with a body of application/problem+json.
func writeFields(w http.ResponseWriter, status int, problem map[string]any) {
	problem["title"] = http.StatusText(status)
	problem["status"] = status
	body, _ := json.Marshal(problem)
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// quotaItem is one quota of a row: its limit, or one of its windows.
type quotaItem struct {
	name      string
	limit     int64
	window    time.Duration
	remaining int64
	wait      time.Duration
}

// quotaItems names the quotas of a row as the server does: "pay:customer", "global:60s".
func quotaItems(row Row) []quotaItem {
	name := row.Policy
	if row.Attribute != "" {
		name += ":" + row.Attribute
	}
	if len(row.Windows) == 0 {
		if row.Limit < 0 {
			return nil
		}
		wait := firstPositive(row.RetryAfter, row.ResetAfter)
		return []quotaItem{{
			name: name, limit: row.Limit, window: row.Window, remaining: row.Remaining, wait: wait,
		}}
	}
	var items []quotaItem
	for _, window := range row.Windows {
		items = append(items, quotaItem{
			name: name + ":" + lengthText(window.Length), limit: window.Limit, window: window.Length,
			remaining: window.Remaining, wait: firstPositive(window.RetryAfter, window.ResetAfter),
		})
	}
	return items
}

func (item quotaItem) policy() string {
	text := fmt.Sprintf("%q;q=%d", item.name, clampInteger(item.limit))
	if item.window >= time.Second {
		text += fmt.Sprintf(";w=%d", ceilSeconds(item.window))
	}
	return text
}

func (item quotaItem) limitText() string {
	text := fmt.Sprintf("%q;r=%d", item.name, clampInteger(item.remaining))
	if item.wait > 0 {
		text += fmt.Sprintf(";t=%d", ceilSeconds(item.wait))
	}
	return text
}

func lengthText(length time.Duration) string {
	if length%time.Second == 0 {
		return fmt.Sprintf("%ds", length/time.Second)
	}
	return fmt.Sprintf("%dms", length/time.Millisecond)
}

func ceilSeconds(wait time.Duration) int64 {
	return int64((wait + time.Second - 1) / time.Second)
}

func clampInteger(value int64) int64 {
	return max(0, min(value, structuredIntegerMax))
}

func firstPositive(first, second time.Duration) time.Duration {
	if first > 0 {
		return first
	}
	return second
}
