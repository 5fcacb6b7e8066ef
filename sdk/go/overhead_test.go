package catraca

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"catraca-go/catracatest"
)

const (
	overheadRounds = 40
	overheadCalls  = 50
)

// The figure is printed and not judged: it depends on the machine.
func TestTheOverheadOfACheckBesideABareCall(t *testing.T) {
	server := catracatest.Start(t, "[policy.site]\nby = [\"ip\"]\nbucket = { size = 1000000, refill = \"1000000 per 1s\" }\n")
	client := newTestClient(t, server.URL)
	bare := bareCaller(t, server.URL)
	check := func() { mustCheck(t, client, "site", ip("198.51.100.1")) }
	var bareTimes, checkTimes []time.Duration
	for range overheadRounds {
		// Both take turns, so that a busy machine slows both.
		bareTimes = append(bareTimes, timeOf(bare))
		checkTimes = append(checkTimes, timeOf(check))
	}
	slices.Sort(bareTimes)
	slices.Sort(checkTimes)
	bareTime := bareTimes[overheadRounds/2] / overheadCalls
	checkTime := checkTimes[overheadRounds/2] / overheadCalls
	ratio := float64(checkTime) / float64(bareTime)
	t.Logf("overhead of go: bare net/http call %s, check %s, ratio of the medians %.3f (%d rounds of %d calls)",
		bareTime, checkTime, ratio, overheadRounds, overheadCalls)
}

func timeOf(call func()) time.Duration {
	begun := time.Now()
	for range overheadCalls {
		call()
	}
	return time.Since(begun)
}

// bareCaller does what a program without this package must do for a check with a deadline.
func bareCaller(t *testing.T, url string) func() {
	transport := newTransport()
	t.Cleanup(transport.CloseIdleConnections)
	caller := &http.Client{Transport: transport}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		body, _ := json.Marshal(map[string]any{"gate": "site", "subject": ip("198.51.100.1")})
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/check", bytes.NewReader(body))
		expect(t, err == nil, "request", err)
		request.Header.Set("Content-Type", "application/json")
		response, err := caller.Do(request)
		expect(t, err == nil, "bare call", err)
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		var decision struct {
			Allowed bool `json:"allowed"`
		}
		expect(t, json.Unmarshal(text, &decision) == nil && decision.Allowed, "bare decision", string(text))
	}
}
