// Package migration runs the Go programs of docs/guide/migrate.md. It is a module of its own, because
// the first of them needs golang.org/x/time and the client needs no other module.
package migration

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"catraca-go/catracatest"
	_ "golang.org/x/time/rate"
)

const (
	guide    = "../../../docs/guide/migrate.md"
	requests = 8
)

// block returns the code block of the guide with this tag.
func block(t *testing.T, tag string) string {
	t.Helper()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```"+tag+"\n")
	body, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatalf("%s has no block %s", guide, tag)
	}
	return body
}

// start builds a program of the guide with the modules of this one, and runs it on a free port.
func start(t *testing.T, name, catracaURL string) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	addresses := strings.NewReplacer("127.0.0.1:8080", address, "http://127.0.0.1:7878", catracaURL)
	folder := t.TempDir()
	source := filepath.Join(folder, name+".go")
	if err := os.WriteFile(source, []byte(addresses.Replace(block(t, "go,file="+name+".go"))), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(folder, name)
	for _, args := range [][]string{{"vet", source}, {"build", "-o", binary, source}} {
		if output, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			t.Fatalf("go %s: %s", strings.Join(args, " "), output)
		}
	}
	program := exec.Command(binary)
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Process.Kill()
		_ = program.Wait()
	})
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if connection, err := net.Dial("tcp", address); err == nil {
			_ = connection.Close()
			return "http://" + address
		}
	}
	t.Fatalf("%s does not listen", name)
	return ""
}

// verdicts are the statuses of requests from one address within a second, which is too short for
// another token. A busy machine may need another attempt, from another address of loopback.
func verdicts(t *testing.T, url string) string {
	t.Helper()
	for attempt := range 20 {
		source := &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(attempt+1))}
		transport := &http.Transport{DialContext: (&net.Dialer{LocalAddr: source}).DialContext}
		client := &http.Client{Transport: transport}
		var seen []string
		begun := time.Now()
		for range requests {
			response, err := client.Get(url + "/export")
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			seen = append(seen, fmt.Sprint(response.StatusCode))
		}
		transport.CloseIdleConnections()
		if time.Since(begun) < 900*time.Millisecond {
			return strings.Join(seen, " ")
		}
	}
	t.Fatalf("%d requests took more than a second", requests)
	return ""
}

func TestBeforeAndAfterGiveTheSameVerdicts(t *testing.T) {
	server := catracatest.Start(t, block(t, "toml,file=limits.toml"))
	before := verdicts(t, start(t, "before", server.URL))
	after := verdicts(t, start(t, "after", server.URL))
	t.Logf("before: %s", before)
	t.Logf("after:  %s", after)
	if before != "200 200 200 200 200 429 429 429" || after != before {
		t.Fatal("the verdicts differ")
	}
}
