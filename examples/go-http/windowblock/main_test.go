package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"catraca-go/catracatest"
)

func TestAnAddressAndATokenHaveTheirOwnLimits(t *testing.T) {
	catalog, err := os.ReadFile("../../../presets/window-block/catalog.toml")
	if err != nil {
		t.Fatal(err)
	}
	// A second is short for a busy machine; the limits are those of the preset.
	t.Setenv("RATE_LIMIT_WINDOW_SECONDS", "60")
	t.Setenv("CATRACA_URL", catracatest.Start(t, string(catalog)).URL)
	handler, err := protect(http.HandlerFunc(hello))
	if err != nil {
		t.Fatal(err)
	}
	service := httptest.NewServer(handler)
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
		if status := get("").StatusCode; status != 200 {
			t.Fatalf("request %d of the address: %d", attempt+1, status)
		}
	}
	blocked := get("invented")
	if blocked.StatusCode != 429 || blocked.Header.Get("Retry-After") != "300" {
		t.Fatalf("the eleventh, with an unknown token: %d, %v", blocked.StatusCode, blocked.Header)
	}
	for attempt := range 20 {
		if status := get("abc123").StatusCode; status != 200 {
			t.Fatalf("request %d of the token: %d", attempt+1, status)
		}
	}
}
