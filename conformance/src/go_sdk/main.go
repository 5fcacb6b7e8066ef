// Compiles the types that `catraca types` printed, and checks what their methods return.
package main

import (
	"context"
	"fmt"
	"log"
	"reflect"

	catraca "catraca-go"

	"types/gates"
)

func main() {
	full := gates.API{Token: "abc123", IP: "198.51.100.7"}
	expect(full.Gate() == gates.APIGate && gates.APIGate == "api", full.Gate())
	expect(same(full.Subject(), map[string]string{"token": "abc123", "ip": "198.51.100.7"}), full.Subject())
	part := gates.API{IP: "198.51.100.7"}
	expect(same(part.Subject(), map[string]string{"ip": "198.51.100.7"}), part.Subject())

	// No server listens there: the fail mode decides.
	client, err := catraca.New("http://127.0.0.1:1", catraca.WithFailMode(catraca.FailOpen))
	expect(err == nil, err)
	decision, err := client.CheckGate(context.Background(), part)
	expect(err == nil && decision.Degraded && decision.Allowed, decision)
	fmt.Println("go: the types of a catalog compile and make subjects")
}

func same(found, wanted map[string]string) bool {
	return reflect.DeepEqual(found, wanted)
}

func expect(isTrue bool, found any) {
	if !isTrue {
		log.Fatalf("go: %+v", found)
	}
}
