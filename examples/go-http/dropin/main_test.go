package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"testing"

	"catraca-go/catracatest"
)

func TestAnOldMiddlewareKeepsItsCodeAndGetsAnotherStorage(t *testing.T) {
	catalog, err := os.ReadFile("../../../presets/window-block/catalog.toml")
	if err != nil {
		t.Fatal(err)
	}
	// A second is short for a busy machine; the limits are those of the preset.
	t.Setenv("RATE_LIMIT_WINDOW_SECONDS", "60")
	server := catracatest.Start(t, string(catalog))
	t.Setenv("CATRACA_URL", server.URL)
	storage, err := newStorage()
	if err != nil {
		t.Fatal(err)
	}
	service := httptest.NewServer(limited(storage, http.HandlerFunc(hello)))
	t.Cleanup(service.Close)
	get := func(token string) *http.Response {
		request, _ := http.NewRequest(http.MethodGet, service.URL, nil)
		request.Header.Set("API_KEY", token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response
	}
	for attempt := range 10 {
		token := ""
		if attempt%2 == 1 {
			token = "invented" + strconv.Itoa(attempt)
		}
		if status := get(token).StatusCode; status != 200 {
			t.Fatalf("request %d of the address: %d", attempt+1, status)
		}
	}
	for _, token := range []string{"", "another"} {
		blocked := get(token)
		wait, _ := strconv.Atoi(blocked.Header.Get("Retry-After"))
		if blocked.StatusCode != 429 || wait < 250 || wait > 301 {
			t.Fatalf("the address with the token %q: %d, %v", token, blocked.StatusCode, blocked.Header)
		}
	}
	if known := get("abc123"); known.StatusCode != 200 || known.Header.Get("X-RateLimit-Remaining") != "99" {
		t.Fatalf("a known token: %d, %v", known.StatusCode, known.Header)
	}
	if err := storage.Reset(context.Background(), "ip:127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	if status := get("").StatusCode; status != 200 {
		t.Fatalf("after the reset: %d", status)
	}
	server.Kill()
	if status := get("").StatusCode; status != 200 {
		t.Fatalf("this middleware lets requests pass without its storage: %d", status)
	}
	if err := storage.Close(); err != nil {
		t.Fatal(err)
	}
}
