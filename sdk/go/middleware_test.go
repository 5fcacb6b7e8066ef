package catraca

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
)

// serveWith runs a handler behind a middleware, on a real port.
func serveWith(t *testing.T, middleware func(http.Handler) http.Handler, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewUnstartedServer(middleware(handler))
	server.Config.ErrorLog = discardLog()
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

func getFrom(t *testing.T, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	request, _ := http.NewRequest(http.MethodGet, url, nil)
	for index := 0; index < len(headers); index += 2 {
		request.Header.Add(headers[index], headers[index+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err.Error()
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response, string(body)
}

func hello(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "hello")
}

func TestTheMiddlewareServesUntilTheLimitAndThenAnswers429(t *testing.T) {
	_, client := startWithClient(t)
	url := serveWith(t, client.Middleware("login"), hello)
	for _, remaining := range []string{"2", "1", "0"} {
		response, body := getFrom(t, url)
		expect(t, response.StatusCode == 200 && body == "hello", "served", body)
		expect(t, response.Header.Get("RateLimit-Policy") == `"login";q=3;w=60`, "policy", response.Header)
		expect(t, response.Header.Get("RateLimit") == `"login";r=`+remaining+`;t=60`, "limit", response.Header)
		expect(t, response.Header.Get("Retry-After") == "", "retry", response.Header)
	}
	response, body := getFrom(t, url)
	expect(t, response.StatusCode == 429 && strings.Contains(body, `"code":"over_limit"`), "denied", body)
	expect(t, response.Header.Get("Retry-After") == "600", "retry", response.Header)
	expect(t, response.Header.Get("Content-Type") == "application/problem+json", "type", response.Header)
	expect(t, response.Header.Get("Cache-Control") == "no-store", "cache", response.Header)
}

func TestKeysCostResponderAndDecisionOfTheMiddleware(t *testing.T) {
	_, client := startWithClient(t)
	middleware := client.Middleware("wide",
		By(HeaderValue("X-Client", "ip")),
		CostOf(func(r *http.Request) int64 { return int64(len(r.URL.Path)) }),
		Respond(func(w http.ResponseWriter, _ *http.Request, decision Decision) {
			http.Error(w, "slow down: "+string(decision.Reason), 420)
		}))
	url := serveWith(t, middleware, func(w http.ResponseWriter, r *http.Request) {
		decision, found := DecisionOf(r.Context())
		expect(t, found && decision.Remaining == 1, "decision", decision)
	})
	response, _ := getFrom(t, url+"/abc", "X-Client", "198.51.100.1")
	expect(t, response.StatusCode == 200, "served", response.StatusCode)
	response, body := getFrom(t, url+"/a", "X-Client", "198.51.100.1")
	expect(t, response.StatusCode == 420 && body == "slow down: over_limit\n", "responder", body)
	response, body = getFrom(t, url)
	expect(t, response.StatusCode == 400 && strings.Contains(body, "missing-attribute"), "missing", body)
	response, _ = getFrom(t, url, "X-Client", "198.51.100.1", "X-Client", "198.51.100.2")
	expect(t, response.StatusCode == 400, "ambiguous", response.StatusCode)
}

func TestTheStatusOfTheResponseSettlesTheCheck(t *testing.T) {
	statuses := map[string]http.HandlerFunc{
		"a 401":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"a flushed 401":  flushed401,
		"a hinted 401":   hinted401,
		"a body of 401s": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) },
	}
	for name, handler := range statuses {
		t.Run(name, func(t *testing.T) {
			_, client := startWithClient(t)
			url := serveWith(t, client.Middleware("attempts"), handler)
			for range 2 {
				response, _ := getFrom(t, url)
				expect(t, response.StatusCode == 401, "served", response.StatusCode)
			}
			response, body := getFrom(t, url)
			expect(t, response.StatusCode == 429 && strings.Contains(body, "blocked"), "not banned", body)
		})
	}
}

func flushed401(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusUnauthorized)
	w.(http.Flusher).Flush()
	_, _ = io.Copy(w, strings.NewReader("no"))
}

func hinted401(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusEarlyHints)
	w.WriteHeader(http.StatusUnauthorized)
}

func TestAnOutcomeThatNoRuleBansIsSettledToo(t *testing.T) {
	_, client := startWithClient(t)
	url := serveWith(t, client.Middleware("attempts"), hello)
	for range 5 {
		response, _ := getFrom(t, url)
		expect(t, response.StatusCode == 200, "served", response.StatusCode)
	}
}

func TestAPanicIsSettledAsA500AndGoesOn(t *testing.T) {
	_, client := startWithClient(t)
	subject := Subject{"participant": "go"}
	key := func(_ *http.Request, into Subject) error {
		into["participant"] = subject["participant"]
		return nil
	}
	var ticket string
	url := serveWith(t, client.Middleware("lookups", By(key)), func(_ http.ResponseWriter, r *http.Request) {
		decision, _ := DecisionOf(r.Context())
		ticket = decision.Ticket
		panic("stop")
	})
	_, text := getFrom(t, url)
	expect(t, strings.Contains(text, "EOF"), "the panic was swallowed", text)
	settled, err := client.Settle(context.Background(), ticket, Outcome{Status: 404})
	expect(t, err == nil && settled.State == "again", "not settled", settled)
	expect(t, settled.Policies[0].Charged == 1, "not settled as a 500", settled)
}

// covers: 002-34
func TestTheMiddlewareFollowsTheFailMode(t *testing.T) {
	server, client := startWithClient(t)
	standard := serveWith(t, client.Middleware("login"), hello)
	open := serveWith(t, client.Middleware("login", CheckWith(OnFailure(FailOpen))), hello)
	closed := serveWith(t, client.Middleware("login", CheckWith(OnFailure(FailClosed))), hello)
	server.Kill()
	response, body := getFrom(t, open)
	expect(t, response.StatusCode == 200 && body == "hello", "open", body)
	expect(t, response.Header.Get("Catraca-Degraded") == "?1", "degraded", response.Header)
	response, body = getFrom(t, standard)
	expectUnchecked(t, response, body)
	response, body = getFrom(t, closed)
	expect(t, response.StatusCode == 503 && strings.Contains(body, "unavailable"), "closed", body)
}

// expectUnchecked checks the response that the guards of all clients give to a request that cannot
// be checked.
func expectUnchecked(t *testing.T, response *http.Response, body string) {
	t.Helper()
	expect(t, response.StatusCode == 503, "status", response.StatusCode)
	expect(t, response.Header.Get("Retry-After") == "1", "retry", response.Header)
	expect(t, response.Header.Get("Content-Type") == "application/problem+json", "type", response.Header)
	expect(t, response.Header.Get("Cache-Control") == "no-store", "cache", response.Header)
	var wanted, found map[string]any
	text, err := os.ReadFile("../testdata/unchecked.json")
	expect(t, err == nil && json.Unmarshal(text, &wanted) == nil, "file", err)
	expect(t, json.Unmarshal([]byte(body), &found) == nil && reflect.DeepEqual(found, wanted), "body", body)
}

func TestARefusedCheckIsNeverServed(t *testing.T) {
	_, client := startWithClient(t)
	url := serveWith(t, client.Middleware("nowhere"), hello)
	response, body := getFrom(t, url)
	expect(t, response.StatusCode == 500 && strings.Contains(body, "check-refused"), "refused", body)
}

func TestAHijackedConnectionIsA101(t *testing.T) {
	recorder := &statusRecorder{ResponseWriter: httptest.NewRecorder()}
	_, _, err := recorder.Hijack()
	expect(t, err != nil && recorder.outcome() == 200, "not supported", err)
	_, client := startWithClient(t)
	outcome := make(chan int, 1)
	url := serveWith(t, client.Middleware("attempts"), func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := w.(http.Hijacker).Hijack()
		expect(t, err == nil, "hijack", err)
		_, _ = io.WriteString(connection, "HTTP/1.1 204 No Content\r\n\r\n")
		_ = connection.Close()
		outcome <- w.(*statusRecorder).outcome()
	})
	response, text := getFrom(t, url)
	expect(t, response != nil && response.StatusCode == 204 && <-outcome == 101, "hijacked", text)
}
