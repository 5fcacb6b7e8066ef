// An API with the limits of presets/window-block: those of the token in the header API_KEY if it is
// known, else those of the address. CATRACA_URL and CATRACA_KEY name the server.
package main

import (
	"io"
	"log"
	"net/http"

	catraca "catraca-go"
)

func main() {
	handler, err := protect(http.HandlerFunc(hello))
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", handler))
}

// protect puts the gate "api" in front of a handler. FailOpen: requests pass while Catraca does not
// answer.
func protect(handler http.Handler) (http.Handler, error) {
	// glue: begin
	client, err := catraca.New("", catraca.WithFailMode(catraca.FailOpen))
	if err != nil {
		return nil, err
	}
	keys := catraca.By(catraca.PeerAddress(), catraca.HeaderValue("API_KEY", "token"))
	return client.Middleware("api", keys)(handler), nil
	// glue: end
}

func hello(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "hello\n")
}
