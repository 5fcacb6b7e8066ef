package catraca

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// fault is what a faulty proxy does to one request.
type fault int

const (
	passOn fault = iota
	// closeUnread closes the connection when the first byte of the request arrives.
	closeUnread
	// closeAfterRequest passes the request on, and resets the connection instead of the response.
	closeAfterRequest
	// cutResponse passes the request on, and resets the connection in the middle of the response.
	cutResponse
)

// faultyProxy forwards to a server over connections that break.
type faultyProxy struct {
	url      string
	upstream string
	listener net.Listener
	choose   func() fault
	group    sync.WaitGroup
}

func startFaultyProxy(t *testing.T, upstream string, choose func() fault) *faultyProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxy := &faultyProxy{
		url: "http://" + listener.Addr().String(), upstream: strings.TrimPrefix(upstream, "http://"),
		listener: listener, choose: choose,
	}
	proxy.group.Add(1)
	go proxy.accept()
	t.Cleanup(func() {
		_ = listener.Close()
		proxy.group.Wait()
	})
	return proxy
}

func (p *faultyProxy) accept() {
	defer p.group.Done()
	for {
		connection, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.group.Add(1)
		go func() {
			defer p.group.Done()
			defer connection.Close()
			p.serve(connection)
		}()
	}
}

// serve forwards the requests of one connection, each over a connection of its own.
func (p *faultyProxy) serve(connection net.Conn) {
	reader := bufio.NewReader(connection)
	for {
		if _, err := reader.Peek(1); err != nil {
			return
		}
		fault := p.choose()
		if fault == closeUnread {
			reset(connection)
			return
		}
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		text, err := p.forward(request)
		if err != nil || fault == closeAfterRequest {
			reset(connection)
			return
		}
		if fault == cutResponse {
			_, _ = connection.Write(text[:len(text)/2])
			reset(connection)
			return
		}
		if _, err := connection.Write(text); err != nil {
			return
		}
	}
}

// forward returns the bytes of the server's response.
func (p *faultyProxy) forward(request *http.Request) ([]byte, error) {
	connection, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	if err := request.Write(connection); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var text strings.Builder
	if err := response.Write(&text); err != nil {
		return nil, err
	}
	return []byte(text.String()), nil
}

// reset makes the client see a reset connection rather than an orderly end.
func reset(connection net.Conn) {
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = connection.Close()
}
