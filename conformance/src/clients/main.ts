// Calls a server with openapi-fetch and the types that openapi-typescript has generated, and checks
// every response.
import createClient from "openapi-fetch";

import type { paths } from "./catraca.js";
import type { Gates } from "./gates.js";

const address = "198.51.100.3";

function expect(what: string, isTrue: boolean, found: unknown): asserts isTrue {
  if (!isTrue) {
    throw new Error(`typescript: ${what}: ${JSON.stringify(found)}`);
  }
}

const client = createClient<paths>({
  baseUrl: process.env.CATRACA_URL,
  headers: { Authorization: `Bearer ${process.env.CATRACA_KEY}` },
});

const allowed = await client.POST("/v1/check", {
  body: { gate: "login", subject: { ip: address }, cost: 2 },
});
expect("check: decision", allowed.data !== undefined, allowed.error);
expect("check: allowed", allowed.data.allowed, allowed.data);
expect("check: reason", allowed.data.reason === "ok", allowed.data);
expect("check: remaining", allowed.data.remaining === 0, allowed.data);

const denied = await client.POST("/v1/check", {
  body: { gate: "login", subject: { ip: address } },
});
expect("denial: decision", denied.data !== undefined, denied.error);
expect("denial: denied", !denied.data.allowed, denied.data);
expect("denial: reason", denied.data.reason === "over_limit", denied.data);
const retry: number | null = denied.data.retry_after_ms;
expect("denial: retry", retry !== null && 0 < retry && retry <= 60_000, retry);

const batch = await client.POST("/v1/check/batch", {
  body: [
    { gate: "login", subject: { ip: address } },
    { gate: "nowhere", subject: { ip: address } },
  ],
});
expect("batch: results", batch.data !== undefined, batch.error);
expect("batch: length", batch.data.length === 2, batch.data);
const [decision, problem] = batch.data;
expect("batch: decision", decision !== undefined && "reason" in decision, decision);
expect("batch: reason", decision.reason === "over_limit", decision);
expect("batch: problem", problem !== undefined && "code" in problem, problem);
expect("batch: code", problem.code === "unknown-gate", problem);

const lookup = await client.POST("/v1/check", {
  body: { gate: "lookups", subject: { participant: "typescript" } },
});
expect("ticket: decision", lookup.data !== undefined, lookup.error);
const settled = await client.POST("/v1/settle", {
  body: { ticket: lookup.data.ticket, outcome: { status: 404 } },
});
expect("settle: settlement", settled.data !== undefined, settled.error);
expect("settle: state", settled.data.state === "settled", settled.data);
expect("settle: charge", settled.data.policies[0]?.charged === 20, settled.data);

const lease = await client.POST("/v1/locks/acquire", { body: { key: "order-typescript" } });
expect("acquire: lease", lease.data !== undefined, lease.error);
expect("acquire: fence", lease.data.fence > 2 ** 32, lease.data);
const released = await client.POST("/v1/locks/release", {
  body: { lease_id: lease.data.lease_id },
});
expect("release: result", released.data !== undefined, released.error);
expect("release: released", released.data.released, released.data);

const refused = await client.POST("/v1/check", { body: { gate: "" } });
expect("problem: status", refused.response.status === 400, refused.response.status);
expect("problem: code", refused.error?.code === "bad-name", refused.error);

// The types of `catraca types --lang ts`: a missing attribute and an unknown gate do not compile.
const login: Gates["login"] = { ip: address };
expect("types: subject", login.ip === address, login);
// @ts-expect-error: the attribute `ip` is missing.
const incomplete: Gates["login"] = {};
expect("types: incomplete", Object.keys(incomplete).length === 0, incomplete);
// @ts-expect-error: the catalog has no such gate.
const unknown: keyof Gates = "nowhere";
expect("types: unknown", typeof unknown === "string", unknown);

console.log("typescript: 8 calls as expected");
