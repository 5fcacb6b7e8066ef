package catraca_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"catraca-go"
)

// exampleServer is a small HTTP server for the examples. It denies the address 198.51.100.66, and grants every lock.
func exampleServer() *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/check", func(w http.ResponseWriter, r *http.Request) {
		var body [256]byte
		read, _ := r.Body.Read(body[:])
		w.Header().Set("Content-Type", "application/json")
		if text := string(body[:read]); text == `{"gate":"login","subject":{"ip":"198.51.100.66"}}` {
			fmt.Fprint(w, `{"allowed":false,"reason":"over_limit","policy":"login","limit":5,"remaining":0,`+
				`"retry_after_ms":60000,"mode":"enforce","policies":[]}`)
			return
		}
		fmt.Fprint(w, `{"allowed":true,"reason":"ok","policy":"login","limit":5,"remaining":4,"mode":"enforce","policies":[]}`)
	})
	return httptest.NewServer(mux)
}

func ExampleClient_Check() {
	server := exampleServer()
	defer server.Close()
	client, err := catraca.New(server.URL, catraca.WithCaller("shop/1.4"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, address := range []string{"198.51.100.7", "198.51.100.66"} {
		decision, err := client.Check(context.Background(), "login", catraca.Subject{"ip": address})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(decision.Allowed, decision.Reason, decision.Remaining, decision.RetryAfter)
	}
	// Output:
	// true ok 4 0s
	// false over_limit 0 1m0s
}

func ExampleClient_Middleware() {
	server := exampleServer()
	defer server.Close()
	client, err := catraca.New(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	logIn := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "welcome") })
	guarded := client.Middleware("login")(logIn)

	request := httptest.NewRequest("POST", "/login", nil)
	for _, address := range []string{"198.51.100.7:50000", "198.51.100.66:50000"} {
		request.RemoteAddr = address
		response := httptest.NewRecorder()
		guarded.ServeHTTP(response, request)
		fmt.Printf("%d %q\n", response.Code, response.Header().Get("Retry-After"))
	}
	// Output:
	// 200 ""
	// 429 "60"
}

func ExampleWithFailMode() {
	// Nothing listens on port 1.
	client, err := catraca.New("http://127.0.0.1:1", catraca.WithFailMode(catraca.FailOpen))
	if err != nil {
		fmt.Println(err)
		return
	}
	subject := catraca.Subject{"ip": "198.51.100.7"}
	decision, err := client.Check(context.Background(), "login", subject)
	fmt.Println(decision.Allowed, decision.Degraded, decision.Reason, err)
	_, err = client.Check(context.Background(), "login", subject, catraca.OnFailure(catraca.FailError))
	fmt.Println(errors.Is(err, catraca.ErrUnavailable))
	// Output:
	// true true unavailable <nil>
	// true
}

func ExampleForwardedAddress() {
	key, err := catraca.ForwardedAddress("10.0.0.0/8")
	if err != nil {
		fmt.Println(err)
		return
	}
	request := httptest.NewRequest("POST", "/login", nil)
	request.RemoteAddr = "10.0.0.1:50000"
	request.Header.Set("X-Forwarded-For", "203.0.113.9, 198.51.100.7")
	subject := catraca.Subject{}
	fmt.Println(key(request, subject), subject["ip"])
	// Output: <nil> 198.51.100.7
}

func ExampleClient_WithLock() {
	client, err := catraca.New("http://127.0.0.1:7878")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = client.WithLock(context.Background(), "order-7", func(ctx context.Context, lease *catraca.Lease) error {
		fmt.Println("UPDATE orders … WHERE last_fence <", lease.Fence)
		return nil
	})
	fmt.Println(err)
}
