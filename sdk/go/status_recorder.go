package catraca

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// statusRecorder notes the status of a response. It passes on what handlers ask of a
// ResponseWriter beside writing: flushing, hijacking, and copying from a file.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

// outcome is the status that the client gets; 200 if the handler wrote none.
func (s *statusRecorder) outcome() int {
	if s.status == 0 {
		return http.StatusOK
	}
	return s.status
}

// WriteHeader notes the first final status. Informational ones (1xx) may precede it.
func (s *statusRecorder) WriteHeader(status int) {
	if s.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *statusRecorder) Write(data []byte) (int, error) {
	s.noteBody()
	return s.ResponseWriter.Write(data)
}

// ReadFrom keeps sendfile possible.
func (s *statusRecorder) ReadFrom(source io.Reader) (int64, error) {
	s.noteBody()
	return io.Copy(s.ResponseWriter, source)
}

// Unwrap is for http.ResponseController.
func (s *statusRecorder) Unwrap() http.ResponseWriter {
	return s.ResponseWriter
}

// Flush does nothing if the writer cannot flush.
func (s *statusRecorder) Flush() {
	s.noteBody()
	_ = http.NewResponseController(s.ResponseWriter).Flush()
}

// Hijack is http.ErrNotSupported if the writer cannot be hijacked.
func (s *statusRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	connection, buffer, err := http.NewResponseController(s.ResponseWriter).Hijack()
	if err == nil && s.status == 0 {
		s.status = http.StatusSwitchingProtocols
	}
	return connection, buffer, err
}

func (s *statusRecorder) noteBody() {
	if s.status == 0 {
		s.status = http.StatusOK
	}
}
