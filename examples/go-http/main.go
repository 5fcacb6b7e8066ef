// A login service with a rate limit: Catraca counts attempts by address, and bans an address after
// five failed ones.
package main

import (
	"io"
	"log"
	"net/http"
)

func main() {
	handler, err := newHandler()
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", handler))
}

// newHandler serves POST /login, protected, and GET /, which is not.
func newHandler() (http.Handler, error) {
	login, err := protect(http.HandlerFunc(logIn))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /login", login)
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "welcome\n") })
	return mux, nil
}

func logIn(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("password") != "correct horse" {
		http.Error(w, "wrong password", http.StatusUnauthorized)
		return
	}
	_, _ = io.WriteString(w, "hello\n")
}
