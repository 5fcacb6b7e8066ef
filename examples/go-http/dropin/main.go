// An API that had a limiter of its own, with a window and a block in a storage: it counts by the
// token in the header API_KEY, else by the address. Only the storage was replaced, by Catraca with
// presets/window-block. CATRACA_URL and CATRACA_KEY name the server.
package main

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"

	catraca "catraca-go"
)

// Storage is what the middleware of the API has always used.
type Storage interface {
	Allow(ctx context.Context, key string, limit int, window, block time.Duration) (bool, int, time.Time, error)
	Reset(ctx context.Context, key string) error
	Close() error
}

func main() {
	storage, err := newStorage()
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", limited(storage, http.HandlerFunc(hello))))
}

// newStorage replaces the storage of the API. Tokens have a gate of their own.
func newStorage() (Storage, error) {
	// glue: begin
	client, err := catraca.New("")
	if err != nil {
		return nil, err
	}
	return catraca.NewLimiter(client, "ip", "ip", catraca.KeysOf("token", "token", "token")), nil
	// glue: end
}

// limited is the middleware, which lets requests pass if its storage fails. One line is new: the
// address of the caller is in the context, so that an invented token counts for it.
func limited(storage Storage, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address, _, _ := net.SplitHostPort(r.RemoteAddr)
		key := "ip:" + address
		if token := r.Header.Get("API_KEY"); token != "" {
			key = "token:" + token
		}
		ctx := catraca.WithAttributes(r.Context(), catraca.Subject{"ip": address}) // glue
		allowed, remaining, reset, err := storage.Allow(ctx, key, 10, time.Second, 5*time.Minute)
		if err != nil {
			log.Printf("the limiter failed, and the request passes: %v", err)
		} else {
			w.Header().Set("X-RateLimit-Remaining", strconv.Itoa(remaining))
		}
		if err == nil && !allowed {
			wait := int(time.Until(reset).Seconds()) + 1
			w.Header().Set("Retry-After", strconv.Itoa(wait))
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func hello(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "hello\n")
}
