// Calls a server with the client that oapi-codegen has generated, and checks every response.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"clients/catraca"
)

const address = "198.51.100.1"

func main() {
	ctx := context.Background()
	client, err := catraca.NewClientWithResponses(
		os.Getenv("CATRACA_URL"), catraca.WithRequestEditorFn(authorize))
	expect("client", err == nil, err)

	cost := int64(2)
	allowed, err := client.CheckWithResponse(ctx, catraca.Check{
		Gate: "login", Subject: subject("ip", address), Cost: &cost})
	expect("check: sent", err == nil, err)
	expect("check: decision", allowed.JSON200 != nil, string(allowed.Body))
	expect("check: allowed", allowed.JSON200.Allowed, allowed.JSON200)
	expect("check: reason", allowed.JSON200.Reason == catraca.Ok, allowed.JSON200)
	expect("check: remaining", *allowed.JSON200.Remaining == 0, allowed.JSON200)

	denied, err := client.CheckWithResponse(ctx, catraca.Check{
		Gate: "login", Subject: subject("ip", address)})
	expect("denial: sent", err == nil, err)
	expect("denial: decision", denied.JSON200 != nil, string(denied.Body))
	expect("denial: denied", !denied.JSON200.Allowed, denied.JSON200)
	expect("denial: reason", denied.JSON200.Reason == catraca.OverLimit, denied.JSON200)
	retry := denied.JSON200.RetryAfterMs
	expect("denial: retry", retry != nil && 0 < *retry && *retry <= 60_000, retry)

	batch, err := client.CheckBatchWithResponse(ctx, catraca.CheckBatchJSONRequestBody{
		{Gate: "login", Subject: subject("ip", address)},
		{Gate: "nowhere", Subject: subject("ip", address)},
	})
	expect("batch: sent", err == nil, err)
	expect("batch: results", batch.JSON200 != nil, string(batch.Body))
	expect("batch: length", len(*batch.JSON200) == 2, string(batch.Body))
	decision, err := (*batch.JSON200)[0].AsDecision()
	expect("batch: decision", err == nil && decision.Reason == catraca.OverLimit, decision)
	problem, err := (*batch.JSON200)[1].AsProblem()
	expect("batch: problem", err == nil && problem.Code == "unknown-gate", problem)

	lookup, err := client.CheckWithResponse(ctx, catraca.Check{
		Gate: "lookups", Subject: subject("participant", "go")})
	expect("ticket: sent", err == nil, err)
	expect("ticket: decision", lookup.JSON200 != nil, string(lookup.Body))
	status := int32(404)
	settled, err := client.SettleWithResponse(ctx, catraca.Settle{
		Ticket: lookup.JSON200.Ticket, Outcome: catraca.Outcome{Status: &status}})
	expect("settle: sent", err == nil, err)
	expect("settle: settlement", settled.JSON200 != nil, string(settled.Body))
	expect("settle: state", settled.JSON200.State == catraca.SettlementStateSettled, settled.JSON200)
	expect("settle: charge", settled.JSON200.Policies[0].Charged == 20, settled.JSON200)

	key := "order-go"
	lease, err := client.AcquireLockWithResponse(ctx, catraca.AcquireLock{Key: &key})
	expect("acquire: sent", err == nil, err)
	expect("acquire: lease", lease.JSON200 != nil, string(lease.Body))
	// A fence has more than 32 bits.
	expect("acquire: fence", lease.JSON200.Fence > 1<<32, lease.JSON200)
	released, err := client.ReleaseLockWithResponse(ctx, catraca.EndLease{
		LeaseId: lease.JSON200.LeaseId})
	expect("release: sent", err == nil, err)
	expect("release: result", released.JSON200 != nil, string(released.Body))
	expect("release: released", released.JSON200.Released, released.JSON200)

	refused, err := client.CheckWithResponse(ctx, catraca.Check{Gate: ""})
	expect("problem: sent", err == nil, err)
	body := refused.ApplicationproblemJSON400
	expect("problem: body", body != nil, string(refused.Body))
	expect("problem: code", body.Code == "bad-name" && body.Status == 400, body)

	fmt.Println("go: 8 calls as expected")
}

func authorize(_ context.Context, request *http.Request) error {
	request.Header.Set("Authorization", "Bearer "+os.Getenv("CATRACA_KEY"))
	return nil
}

func subject(name string, value string) *catraca.Subject {
	var text catraca.Subject_AdditionalProperties
	err := text.FromSubject0(value)
	expect("subject", err == nil, err)
	return &catraca.Subject{name: text}
}

func expect(what string, isTrue bool, found any) {
	if !isTrue {
		log.Fatalf("go: %s: %+v", what, found)
	}
}
