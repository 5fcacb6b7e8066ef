// Package catracatest runs a Catraca server for tests: the real program, on a free port of
// loopback, in a temporary directory. The environment variable CATRACA_BIN names the program; the
// default is catraca on the path.
package catracatest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const startTimeout = 20 * time.Second

// Server is a running server. It is ended, by its process id, when the test ends.
type Server struct {
	// URL is the address of the server.
	URL     string
	t       testing.TB
	catalog string
	address string
	process *exec.Cmd
}

// Start runs a server with this catalog.
func Start(t testing.TB, catalog string) *Server {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "catalog.toml")
	if err := os.WriteFile(file, []byte(catalog), 0o600); err != nil {
		t.Fatal(err)
	}
	server := &Server{t: t, catalog: file, address: "127.0.0.1:0"}
	t.Cleanup(server.Kill)
	server.Restart()
	return server
}

// NewKey makes an API key of this role, with the name of the role, and the table that lets it in,
// to be added to a catalog. More arguments are those of `catraca keygen`.
func NewKey(t testing.TB, role string, more ...string) (key, table string) {
	t.Helper()
	arguments := append([]string{"keygen", "--role", role, "--name", role}, more...)
	text, err := exec.Command(binary(), arguments...).Output()
	if err != nil {
		t.Fatalf("catraca keygen: %v", err)
	}
	key, rest, _ := strings.Cut(string(text), "\n")
	_, table, found := strings.Cut(rest, "[[auth.key]]")
	if !found {
		t.Fatalf("catraca keygen printed no table: %s", text)
	}
	return key, "[[auth.key]]" + table
}

// Kill ends the server at once, as a crash does. A server that has ended is left alone.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
	s.process = nil
}

// Restart starts the server again after Kill, on the same address, and waits until it listens.
func (s *Server) Restart() {
	s.t.Helper()
	process := exec.Command(binary(), "serve", "--catalog", s.catalog, "--listen", s.address)
	// Presets have a proxy with a fixed port; servers of tests run side by side.
	process.Env = append([]string{"PROXY_LISTEN=127.0.0.1:0"}, os.Environ()...)
	process.Dir = filepath.Dir(s.catalog)
	var errors strings.Builder
	process.Stderr = &errors
	output, err := process.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		s.t.Fatalf("cannot start %s (set CATRACA_BIN to the catraca program): %v", binary(), err)
	}
	s.process = process
	firstLine := make(chan string, 1)
	go func() {
		lines := bufio.NewReader(output)
		line, _ := lines.ReadString('\n')
		firstLine <- line
		_, _ = io.Copy(io.Discard, lines)
	}()
	select {
	case line := <-firstLine:
		_, url, found := strings.Cut(strings.TrimSpace(line), "listens on ")
		if !found {
			s.Kill()
			s.t.Fatalf("catraca did not start: %s", errors.String())
		}
		s.URL = url
		s.address = strings.TrimPrefix(url, "http://")
	case <-time.After(startTimeout):
		s.Kill()
		s.t.Fatalf("catraca did not start within %s", startTimeout)
	}
}

func binary() string {
	if path := os.Getenv("CATRACA_BIN"); path != "" {
		return path
	}
	return "catraca"
}
