package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"catraca-go/catracatest"
)

func start(t *testing.T) (service string, catraca *catracatest.Server) {
	t.Helper()
	catalog, err := os.ReadFile("catalog.toml")
	if err != nil {
		t.Fatal(err)
	}
	catraca = catracatest.Start(t, string(catalog))
	t.Setenv("CATRACA_URL", catraca.URL)
	handler, err := newHandler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL, catraca
}

func logInWith(t *testing.T, service, password string) *http.Response {
	t.Helper()
	response, err := http.PostForm(service+"/login", url.Values{"password": {password}})
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response
}

func TestFiveWrongPasswordsBanTheAddress(t *testing.T) {
	service, _ := start(t)
	if status := logInWith(t, service, "correct horse").StatusCode; status != 200 {
		t.Fatalf("the right password: %d", status)
	}
	for attempt := range 5 {
		if status := logInWith(t, service, "guess").StatusCode; status != 401 {
			t.Fatalf("wrong password %d: %d", attempt+1, status)
		}
	}
	banned := logInWith(t, service, "correct horse")
	if banned.StatusCode != 429 || banned.Header.Get("Retry-After") != "3600" {
		t.Fatalf("after five wrong passwords: %d, %v", banned.StatusCode, banned.Header)
	}
	page, err := http.Get(service)
	if err != nil || page.StatusCode != 200 {
		t.Fatalf("the page without a limit: %v", err)
	}
	_ = page.Body.Close()
}

func TestLoginsGoOnWhileCatracaIsDown(t *testing.T) {
	service, catraca := start(t)
	catraca.Kill()
	if status := logInWith(t, service, "correct horse").StatusCode; status != 200 {
		t.Fatalf("the right password: %d", status)
	}
}

// The lines that a program needs for its limits, printed for comparison.
func TestGlueLinesAreFew(t *testing.T) {
	text, err := os.ReadFile("limits.go")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(text), "func ")
	lines := 0
	for _, line := range strings.Split(body, "\n") {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	t.Logf("%d lines of glue", lines)
	if lines > 10 {
		t.Fatalf("%d lines of glue, more than 10", lines)
	}
}
