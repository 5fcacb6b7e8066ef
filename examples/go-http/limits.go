package main

import (
	"net/http"

	catraca "catraca-go"
)

// protect puts the gate "login" in front of a handler. A login that fails with 401 is settled with
// that status, so the ban of the catalog starts after five of them. FailOpen: logins go on while
// Catraca does not answer.
func protect(handler http.Handler) (http.Handler, error) {
	// glue: begin
	client, err := catraca.New("", catraca.WithCaller("go-http/1.0"), catraca.WithFailMode(catraca.FailOpen))
	if err != nil {
		return nil, err
	}
	return client.Middleware("login")(handler), nil
	// glue: end
}
