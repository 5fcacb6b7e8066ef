// Package catraca is the Go client of Catraca, a rate-limiting service.
//
//	client, err := catraca.New("http://127.0.0.1:7878")
//	decision, err := client.Check(ctx, "login", catraca.Subject{"ip": "198.51.100.7"})
//	if err != nil || !decision.Allowed { … }
//
// A denial is a value, never an error. An error means that the server did not answer within the
// deadline (ErrUnavailable), or that it refused the call as invalid. A client or a call with
// FailOpen or FailClosed gets a decision instead of the first, which has Degraded and the reason
// "unavailable"; an invalid call is an error in every fail mode.
//
// The package uses only the standard library.
package catraca

// Version is the version of this package.
const Version = "0.1.0"
