// Blocks are remembered for a few seconds, and only those.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Catraca } from "@catraca/client";
import type { Decision } from "@catraca/client";

import { BlockCache } from "../dist/esm/block-cache.js";
import { decideByFailureMode } from "../dist/esm/failure.js";
import { startProxy } from "./support/proxy.js";
import { startServer } from "./support/server.js";
import { waitUntil } from "./support/wait.js";

const SUBJECT = { ip: "198.51.100.7" };

function denial(fields: Partial<Decision>): Decision {
  const decision = { ...decideByFailureMode("closed"), degraded: false, revision: "r" };
  return { ...decision, reason: "blocked", retry_after_ms: 60_000, ...fields };
}

/** A cache whose clock the test moves. */
function cacheAt(options = {}) {
  const clock = { now: 1_000_000 };
  const settings = { maxAgeMs: 5_000, maxEntries: 3, ...options };
  return { clock, cache: new BlockCache(settings, () => clock.now) };
}

test("an entry denies with the time that is left, until it is five seconds old", () => {
  const { clock, cache } = cacheAt();
  cache.store("login", SUBJECT, true, denial({}), clock.now);
  clock.now += 4_999;
  const found = cache.find("login", SUBJECT, true);
  assert.deepEqual([found?.allowed, found?.cached, found?.retry_after_ms], [false, true, 55_001]);
  clock.now += 1;
  assert.equal(cache.find("login", SUBJECT, true), undefined);
  assert.equal(cache.size, 0);
});

test("the time of an answer on its way counts", () => {
  const { clock, cache } = cacheAt();
  const askedAt = clock.now;
  clock.now += 3_000;
  cache.store("login", SUBJECT, true, denial({}), askedAt);
  clock.now += 1_999;
  assert.equal(cache.find("login", SUBJECT, true)?.retry_after_ms, 55_001);
  clock.now += 1;
  assert.equal(cache.find("login", SUBJECT, true), undefined);
});

test("a late answer is remembered for the rest of the five seconds alone", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_000_000 });
  let calls = 0;
  const late = (async () => {
    calls += 1;
    t.mock.timers.setTime(Date.now() + 400);
    return Response.json(denial({}));
  }) as typeof fetch;
  const catraca = new Catraca({ url: "http://127.0.0.1:1", fetch: late });
  await catraca.check("login", SUBJECT);
  t.mock.timers.setTime(1_004_999);
  assert.equal((await catraca.check("login", SUBJECT)).cached, true);
  t.mock.timers.setTime(1_005_000);
  assert.equal((await catraca.check("login", SUBJECT)).cached, undefined);
  assert.equal(calls, 2);
});

test("no policy counts a blocked check, so it is remembered with any other policies", async () => {
  const server = await startServer(`
[policy.first]
by = ["ip"]
window = "1 per 1m"
block = "15m"
[policy.counting]
by = ["ip"]
window = "1 per 1m"
count_denied = true
[gate.login]
policies = ["first", "counting"]
`);
  const options = { url: server.url, key: server.keys.check, deadlineMs: 5_000 };
  const direct = new Catraca({ ...options, blockCache: false });
  const check = () => direct.check("login", SUBJECT);
  await waitUntil("the caller is blocked", async () => (await check()).reason === "blocked");
  const { policies } = await check();
  assert.deepEqual(policies.map((row) => row.charged), [0, 0]);
  const catraca = new Catraca(options);
  await catraca.check("login", SUBJECT);
  assert.equal((await catraca.check("login", SUBJECT)).cached, true);
  await server.stop();
});

test("an entry ends with its block, and with a clock that was set back", () => {
  const { clock, cache } = cacheAt();
  cache.store("login", SUBJECT, true, denial({ retry_after_ms: 100 }), clock.now);
  clock.now += 100;
  assert.equal(cache.find("login", SUBJECT, true), undefined);
  cache.store("login", SUBJECT, true, denial({}), clock.now);
  clock.now -= 1;
  assert.equal(cache.find("login", SUBJECT, true), undefined);
});

test("an entry is about one gate, one subject and one use of lists", () => {
  const { clock, cache } = cacheAt();
  cache.store("login", { ip: "a", user: 7 }, true, denial({}), clock.now);
  assert.ok(cache.find("login", { user: "7", ip: "a", tenant: undefined }, true));
  assert.equal(cache.find("orders", { ip: "a", user: 7 }, true), undefined);
  assert.equal(cache.find("login", { ip: "a" }, true), undefined);
  assert.equal(cache.find("login", { ip: "a", user: 7 }, false), undefined);
});

test("only blocks are remembered", () => {
  const { clock, cache } = cacheAt();
  for (const fields of [
    { reason: "over_limit" as const },
    { reason: "too_costly" as const },
    { degraded: true },
    { allowed: true, reason: "ok" as const },
  ]) {
    cache.store("login", SUBJECT, true, denial(fields), clock.now);
  }
  assert.equal(cache.size, 0);
  const started = denial({ reason: "over_limit", blocked_until: "2030-01-01T00:00:00Z" });
  cache.store("login", SUBJECT, true, started, clock.now);
  assert.equal(cache.find("login", SUBJECT, true)?.reason, "blocked");
});

test("the oldest entry leaves when the cache is full", () => {
  const { clock, cache } = cacheAt();
  for (const ip of ["a", "b", "c", "d"]) {
    cache.store("login", { ip }, true, denial({}), clock.now);
  }
  assert.equal(cache.size, 3);
  assert.equal(cache.find("login", { ip: "a" }, true), undefined);
  assert.ok(cache.find("login", { ip: "d" }, true));
});

// covers: X-18, B-02
test("a blocked caller is denied without a call, and a released one gets in", async () => {
  const server = await startServer();
  const proxy = await startProxy(server.url);
  const options = { url: proxy.url, key: server.keys.check, deadlineMs: 5_000 };
  const catraca = new Catraca({ ...options, blockCache: { maxAgeMs: 2_000 } });
  const check = () => catraca.check("login", SUBJECT);
  for (let n = 0; n < 4; n += 1) await check();
  const calls = proxy.calls.length;
  const cached = await check();
  assert.deepEqual([cached.allowed, cached.cached, proxy.calls.length], [false, true, calls]);

  const admin = new Catraca({ url: server.url, key: server.keys.admin });
  await admin.request("POST", "/v1/reset", { policy: "login", subject: SUBJECT });
  const released = performance.now();
  await waitUntil("the caller passes", async () => (await check()).allowed);
  assert.ok(performance.now() - released < 3_000);

  const direct = new Catraca({ ...options, blockCache: false });
  for (let n = 0; n < 5; n += 1) await direct.check("login", { ip: "198.51.100.8" });
  assert.equal((await direct.check("login", { ip: "198.51.100.8" })).cached, undefined);
  await proxy.close();
  await server.stop();
});
