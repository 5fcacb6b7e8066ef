package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strconv"
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

// glueLines counts the lines of a file that exist because of Catraca, by the rule of ../README.md.
func glueLines(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	inside := false
	for _, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "// glue: begin", line == "// glue: end":
			inside = strings.HasSuffix(line, "begin")
		case line == "", strings.HasPrefix(line, "//"):
		case inside, strings.HasSuffix(line, "// glue"), strings.Contains(strings.ToLower(line), "catraca"):
			lines++
		}
	}
	return lines
}

// Each row of the table with Go files has their number of lines, and none has more than ten.
func TestTheTableOfGlueLinesIsThatOfTheFiles(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]*\| (\d+) \| \[(go-http/[^\]]+\.go)\]`)
	rows := row.FindAllStringSubmatch(string(text), -1)
	if len(rows) != 2 {
		t.Fatalf("%d rows of Go files", len(rows))
	}
	for _, cells := range rows {
		found := glueLines(t, "../"+cells[3])
		t.Logf("%s: %d lines of glue", cells[1], found)
		if strconv.Itoa(found) != cells[2] || found > 10 {
			t.Errorf("%s has %d lines of glue, and the table says %s", cells[3], found, cells[2])
		}
	}
}
