// Lost answers, deadlines and failure modes, through a proxy that loses answers.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, beforeEach, test } from "node:test";

import { Catraca, UnavailableError } from "@catraca/client";

import { closeServer, listen, startProxy } from "./support/proxy.js";
import type { TestProxy } from "./support/proxy.js";
import { startServer } from "./support/server.js";
import type { TestServer } from "./support/server.js";

const DEADLINE_MS = 400;
/** A busy machine may run a timer late. */
const SLACK_MS = 400;

let server: TestServer;
let proxy: TestProxy;
let catraca: Catraca;
let failures: Error[];

before(async () => {
  server = await startServer();
  proxy = await startProxy(server.url);
});

after(async () => {
  await proxy.close();
  await server.stop();
});

beforeEach(() => {
  failures = [];
  proxy.mode = "pass";
  proxy.remaining = Infinity;
  proxy.calls.length = 0;
  catraca = new Catraca({
    url: proxy.url,
    key: server.keys.check,
    deadlineMs: DEADLINE_MS,
    onUnavailable: (error) => failures.push(error),
  });
});

//
test("a check that is not answered is an error, or what the failure mode decides", async () => {
  const subject = { ip: "198.51.100.10" };
  for (const mode of ["lose", "cut", "error"] as const) {
    proxy.mode = mode;
    const started = performance.now();
    await assert.rejects(catraca.check("login", subject), UnavailableError);
    const open = await catraca.check("login", subject, { onFailure: "open" });
    const closed = await catraca.check("login", subject, { onFailure: "closed" });
    const took = performance.now() - started;
    assert.ok(took < 3 * DEADLINE_MS + SLACK_MS, `${mode}: ${took} ms`);
    assert.deepEqual([open.allowed, open.degraded, open.reason], [true, true, "unavailable"]);
    assert.deepEqual([closed.allowed, closed.degraded], [false, true]);
  }
  assert.equal(failures.length, 9);
  assert.ok(failures.every((error) => error instanceof UnavailableError));
});

test("an outage is one line at its start and one at its end, unless onUnavailable is set", async (t) => {
  const warn = t.mock.method(console, "warn", () => {});
  const lines = () => warn.mock.calls.map((call) => String(call.arguments[0]));
  const options = { url: proxy.url, key: server.keys.check, deadlineMs: DEADLINE_MS } as const;
  const subject = { ip: "198.51.100.19", tenant: "t1" };
  for (const onFailure of ["open", "closed", "error"] as const) {
    warn.mock.resetCalls();
    const quiet = new Catraca({ ...options, onFailure });
    const told = new Catraca({ ...options, onFailure, onUnavailable: () => {} });
    for (let outage = 1; outage <= 2; outage += 1) {
      proxy.mode = "cut";
      for (let n = 0; n < 3; n += 1) {
        await Promise.allSettled([quiet.check("search", subject), told.check("search", subject)]);
      }
      assert.equal(lines().length, 2 * outage - 1, lines().join());
      assert.match(lines().at(-1) ?? "", /^catraca: .*; checks follow onFailure until it answers$/);
      proxy.mode = "pass";
      for (let n = 0; n < 3; n += 1) {
        await Promise.all([quiet.check("search", subject), told.check("search", subject)]);
      }
      assert.equal(lines().length, 2 * outage, lines().join());
      assert.equal(lines().at(-1), "catraca: the server answers checks again");
    }
  }
});

test("a proxy that answers 429 is no refusal of the check", async () => {
  const busy = (async () => new Response("{}", { status: 429 })) as typeof fetch;
  const lost = new Catraca({ url: "http://127.0.0.1:1", fetch: busy });
  await assert.rejects(lost.check("login", { ip: "198.51.100.18" }), UnavailableError);
});

test("the failure mode of the client applies where a call has none", async () => {
  const strict = new Catraca({
    url: proxy.url,
    key: server.keys.check,
    deadlineMs: 100,
    onFailure: "closed",
  });
  proxy.mode = "lose";
  assert.equal((await strict.check("login", { ip: "198.51.100.11" })).allowed, false);
  const open = await strict.check("login", { ip: "198.51.100.11" }, { onFailure: "open" });
  assert.equal(open.allowed, true);
  const error = strict.check("login", { ip: "198.51.100.11" }, { onFailure: "error" });
  await assert.rejects(error, UnavailableError);
  assert.deepEqual([strict.onFailure, catraca.onFailure], ["closed", undefined]);
});

test("a check is never sent twice", async () => {
  for (const mode of ["lose", "cut", "error"] as const) {
    proxy.calls.length = 0;
    proxy.mode = mode;
    await assert.rejects(catraca.check("login", { ip: "198.51.100.12" }), UnavailableError);
    assert.deepEqual(proxy.calls, ["/v1/check"], mode);
  }
});

test("a peek, a settle and the calls of a lease are sent again after a failure", async () => {
  const decision = await catraca.check("failures", { ip: "198.51.100.13" });
  for (const mode of ["cut", "error"] as const) {
    proxy.mode = mode;
    proxy.remaining = 1;
    assert.equal((await catraca.peek("login", { ip: "198.51.100.13" })).degraded, false);
    proxy.remaining = 1;
    assert.ok((await catraca.settle(decision, { status: 200 }))?.state);
    proxy.remaining = 1;
    const name = `again-${mode}`;
    const lease = await catraca.acquireLock(name);
    assert.equal(lease.granted, true, "the repeated request got the lease of the first one");
    assert.equal((await catraca.acquireLock(name)).granted, false);
    assert.ok(lease.granted);
    proxy.remaining = 1;
    assert.ok(await catraca.renewLock(lease), "the second renewal extends it once more");
    proxy.remaining = 1;
    assert.equal((await catraca.releaseLock(lease)).outcome, "already_released");
    const start = new Date("2030-01-07T10:00:00Z");
    const end = new Date("2030-01-07T10:30:00Z");
    const hold = await catraca.holdSlot({ calendar: name, start, end });
    assert.ok(hold.granted);
    proxy.remaining = 1;
    assert.equal((await catraca.confirmSlot(hold))?.fence, hold.fence);
    proxy.remaining = 1;
    assert.equal((await catraca.cancelSlot(hold)).outcome, "already_released");
  }
  for (const path of ["/v1/peek", "/v1/locks/renew", "/v1/locks/release", "/v1/slots/confirm"]) {
    assert.equal(proxy.calls.filter((call) => call === path).length, 4, path);
  }
});

test("retries end with the deadline", async () => {
  proxy.mode = "cut";
  const started = performance.now();
  await assert.rejects(catraca.peek("login", { ip: "198.51.100.14" }), UnavailableError);
  assert.ok(performance.now() - started < DEADLINE_MS + SLACK_MS);
  assert.ok(proxy.calls.length > 1 && proxy.calls.length <= 4, String(proxy.calls.length));
});

test("the caller's own signal rejects with its reason", async () => {
  proxy.mode = "lose";
  const controller = new AbortController();
  const reason = new Error("the client has gone");
  const call = catraca.check("login", { ip: "198.51.100.15" }, { signal: controller.signal });
  controller.abort(reason);
  await assert.rejects(call, reason);
  const { signal } = controller;
  await assert.rejects(catraca.check("login", { ip: "198.51.100.15" }, { signal }), reason);
});

test("a call that is not a decision rejects while the server is unavailable", async () => {
  proxy.mode = "cut";
  await assert.rejects(catraca.settle("ticket", { status: 200 }), UnavailableError);
  await assert.rejects(catraca.acquireLock("a"), UnavailableError);
});

test("a proxy in front of the server that cannot pass a call on is unavailable", async () => {
  for (const status of [408, 429, 502]) {
    const busy = (async () => Response.json({}, { status })) as typeof fetch;
    const client = new Catraca({ url: proxy.url, fetch: busy, onFailure: "closed" });
    const decision = await client.check("login", { ip: "198.51.100.18" });
    assert.deepEqual([decision.allowed, decision.degraded], [false, true], String(status));
  }
});

test("a page in place of the API is unavailable, and never allows by accident", async () => {
  for (const text of ["<html>", "{}", "null"]) {
    const page = (async () => new Response(text, { status: 200 })) as typeof fetch;
    const lost = new Catraca({ url: "http://127.0.0.1:1", fetch: page, onFailure: "closed" });
    const { allowed, degraded } = await lost.check("login", { ip: "198.51.100.16" });
    assert.deepEqual([allowed, degraded], [false, true], text);
  }
});

test("a redirect is not followed: the key stays with Catraca", async () => {
  let followed = 0;
  const target = createServer((_, response) => {
    followed += 1;
    response.end("{}");
  });
  const url = await listen(target);
  const redirecting = createServer((_, response) => {
    response.writeHead(307, { Location: `${url}/v1/check` }).end();
  });
  const lost = new Catraca({ url: await listen(redirecting), key: "k", onFailure: "closed" });
  assert.equal((await lost.check("login", { ip: "198.51.100.17" })).degraded, true);
  assert.equal(followed, 0);
  await closeServer(redirecting);
  await closeServer(target);
});
