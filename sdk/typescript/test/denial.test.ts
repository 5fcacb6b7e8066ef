// A denial of a guard is the denial that the server itself gives to a gateway.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Catraca } from "@catraca/client";
import type { Decision } from "@catraca/client";

import { clientAddress } from "../dist/esm/guard/address.js";
import { denialStatus, makeDenial } from "../dist/esm/guard/denial.js";
import { decisionFields } from "../dist/esm/guard/fields.js";
import { decideByFailureMode } from "../dist/esm/failure.js";
import { REPOSITORY, startServer } from "./support/server.js";

const POLICIES = `
[policy.login]
by      = ["ip"]
window  = ["5 per 1h", "1 per 10m"]
block   = "2h"
message = "Slow down."
`;
const FORMATS = ["problem", "error", "conflict", "message", "empty"] as const;

for (const format of FORMATS) {
  test(`the format ${format} is that of the server`, async () => {
    const server = await startServer(`${POLICIES}\n[server]\ndenial = "${format}"\n`);
    const key = server.keys.check;
    const headers = { "Catraca-Key": key };
    const authorize = () => fetch(`${server.url}/v1/gates/login/authorize`, { headers });
    for (let n = 0; n < 2; n += 1) await authorize();
    const response = await authorize();
    const body = await response.text();
    const catraca = new Catraca({ url: server.url, key, deadlineMs: 5_000 });
    const denial = makeDenial(await catraca.check("login", { ip: "127.0.0.1" }), format);
    await server.stop();

    assert.equal(denial.status, response.status);
    assert.equal(round(denial.body), round(body));
    for (const name of ["Content-Type", "Retry-After", "RateLimit", "RateLimit-Policy"]) {
      const own = denial.fields[name] ?? null;
      assert.equal(round(own ?? ""), round(response.headers.get(name) ?? ""), name);
    }
    assert.equal(denial.fields["Cache-Control"], "no-store");
  });
}

/** Waits of more than a minute in tens of seconds: a second may pass between two answers. */
function round(text: string): string {
  return text.replace(/\d{3,}/g, (digits) => String(Math.round(Number(digits) / 10) * 10));
}

interface HeaderCase {
  name: string;
  decision: Decision;
  status: number;
  headers: Record<string, string>;
}

// The tests of the Rust crate make the file, with the code of the server and of its tower layer.
test("the fields of every kind of decision are those of the server", () => {
  const file = join(REPOSITORY, "sdk", "testdata", "headers.json");
  const cases = JSON.parse(readFileSync(file, "utf8")) as HeaderCase[];
  assert.ok(cases.length > 20);
  for (const { name, decision, status, headers } of cases) {
    const fields = Object.entries(decisionFields(decision));
    const own = Object.fromEntries(fields.map(([field, value]) => [field.toLowerCase(), value]));
    assert.deepEqual(own, headers, name);
    assert.equal(decision.allowed ? 200 : denialStatus(decision), status, name);
  }
});

test("conflict has the message of the policy, and error the text that a checkout reads", () => {
  const denied = { ...decideByFailureMode("closed"), message: "Aguarde 1 minuto." };
  const textOf = (decision: Decision, format: "conflict" | "error") =>
    (JSON.parse(makeDenial(decision, format).body) as { error: string }).error;
  assert.equal(textOf(denied, "conflict"), "Aguarde 1 minuto.");
  assert.equal(textOf({ ...denied, message: null }, "conflict"), "Rate limit exceeded");
  assert.equal(textOf(denied, "error"), "Rate limit exceeded");
});

test("the status says why", () => {
  const denied = { ...decideByFailureMode("closed"), degraded: false };
  const status = (fields: Partial<Decision>) => denialStatus({ ...denied, ...fields });
  assert.equal(status({ reason: "over_limit" }), 429);
  assert.equal(status({ reason: "blocked", status: 418 }), 418);
  assert.equal(status({ reason: "blocklisted", status: 418 }), 403);
  assert.equal(status({ reason: "missing" }), 400);
  assert.equal(status({ reason: "unavailable" }), 503);
});

test("a degraded decision says so, and an unknown wait is left out", () => {
  const fields = decisionFields(decideByFailureMode("closed"));
  assert.deepEqual(fields, { "Catraca-Degraded": "?1" });
});

test("a wait is in whole seconds, rounded up, at least one", () => {
  const denied = { ...decideByFailureMode("closed"), degraded: false };
  const wait = (ms: number) => decisionFields({ ...denied, retry_after_ms: ms })["Retry-After"];
  assert.deepEqual([0, 1, 1000, 1001].map(wait), ["1", "1", "1", "2"]);
});

test("the address is the one that the last trusted proxy wrote", () => {
  const address = (value: string, hops?: number, header = "x-forwarded-for") =>
    clientAddress(new Headers({ [header]: value }), { ...(hops && { hops }), header });
  assert.equal(address("6.6.6.6, 203.0.113.9"), "203.0.113.9");
  assert.equal(address("6.6.6.6, 203.0.113.9, 10.0.0.1", 2), "203.0.113.9");
  assert.equal(address("203.0.113.9:4711"), "203.0.113.9");
  assert.equal(address("[2001:db8::1]:443"), "2001:db8::1");
  assert.equal(address("2001:db8::1"), "2001:db8::1");
  assert.equal(address("6.6.6.6, unknown"), undefined);
  assert.equal(address("203.0.113.9", 2), undefined);
  assert.equal(clientAddress(new Headers()), undefined);
  assert.equal(address("203.0.113.9", 1, "cf-connecting-ip"), "203.0.113.9");
});
