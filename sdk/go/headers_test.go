package catraca

import (
	"encoding/json"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"catraca-go/catracatest"
)

// The headers of the middleware are those that the server writes for gateways.
func TestTheHeadersAreThoseOfTheServer(t *testing.T) {
	server := catracatest.Start(t, `
[policy.global]
by     = ["ip"]
window = ["600 per 1m", "15 per 1500ms"]

[policy.pay]
each   = ["ip", "customer"]
window = "5 per 1m"

[policy.burst]
by     = ["ip"]
window = "30 per 1m"

[gate.api]
policies = ["global", "burst"]
`)
	client := newTestClient(t, server.URL)
	header := http.Header{}
	WriteHeaders(header, mustCheck(t, client, "api", ip("198.51.100.1")))
	response, _ := getFrom(t, server.URL+"/v1/gates/api/authorize")
	for _, name := range []string{"RateLimit-Policy", "RateLimit"} {
		expect(t, header.Get(name) == response.Header.Get(name), name+" of the server: "+response.Header.Get(name), header)
	}
	header = http.Header{}
	WriteHeaders(header, mustCheck(t, client, "pay", Subject{"ip": "198.51.100.1", "customer": "ana"}))
	expect(t, header.Get("RateLimit") == `"pay:ip";r=4;t=60, "pay:customer";r=4;t=60`, "each", header)
}

// The tests of the Rust crate make the file, with the code of the server and of its tower layer.
func TestTheHeadersOfEveryKindOfDecisionAreThoseOfTheServer(t *testing.T) {
	text, err := os.ReadFile("../testdata/headers.json")
	expect(t, err == nil, "file", err)
	var cases []struct {
		Name     string
		Decision json.RawMessage
		Status   int
		Headers  map[string]string
	}
	expect(t, json.Unmarshal(text, &cases) == nil && len(cases) > 20, "cases", len(cases))
	for _, one := range cases {
		decision, err := parseDecision(one.Decision)
		expect(t, err == nil, one.Name, err)
		header := http.Header{}
		WriteHeaders(header, decision)
		found := map[string]string{}
		for name := range header {
			found[strings.ToLower(name)] = header.Get(name)
		}
		expect(t, reflect.DeepEqual(found, one.Headers), one.Name, found)
		expect(t, decision.StatusCode() == one.Status, one.Name, decision.StatusCode())
	}
}

func TestRetryAfterIsRoundedUpAndNeverZero(t *testing.T) {
	for wait, seconds := range map[time.Duration]string{
		time.Millisecond:                 "1",
		time.Second:                      "1",
		time.Second + 1:                  "2",
		57*time.Second + 1:               "58",
		0:                                "",
		10*time.Minute - time.Nanosecond: "600",
	} {
		header := http.Header{}
		WriteHeaders(header, Decision{Reason: ReasonBlocked, RetryAfter: wait})
		expect(t, header.Get("Retry-After") == seconds, wait.String(), header)
	}
}

func TestTheStatusOfADenial(t *testing.T) {
	for status, decision := range map[int]Decision{
		200: {Allowed: true, Status: 409},
		409: {Reason: ReasonBlocked, Status: 409},
		403: {Reason: ReasonBlocklisted},
		400: {Reason: ReasonMissing},
		503: {Reason: ReasonUnavailable},
		429: {Reason: ReasonTooCostly},
	} {
		expect(t, decision.StatusCode() == status, "status", decision)
	}
}
