// The shapes of a checkout's edge functions, over presets/checkout.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Catraca } from "@catraca/client";
import {
  RATE_LIMIT_CONFIGS,
  addToBlocklist,
  checkRateLimit,
  getClientIP,
  listBlocklist,
  rateLimitMiddleware,
  rateLimitOnlyMiddleware,
  removeFromBlocklist,
} from "@catraca/client/checkout";
import type { RateLimitConfig } from "@catraca/client/checkout";

import { preset, startServer } from "./support/server.js";
import type { TestServer } from "./support/server.js";

const CORS = { "Access-Control-Allow-Origin": "https://shop.example" };

let server: TestServer;
let catraca: Catraca;
let admin: Catraca;

before(async () => {
  server = await startServer(preset("checkout"));
  const options = { url: server.url, deadlineMs: 5_000, blockCache: false } as const;
  catraca = new Catraca({ ...options, key: server.keys.check });
  admin = new Catraca({ ...options, key: server.keys.admin });
});

after(() => server.stop());

function request(ip: string): Request {
  const headers = { "X-Forwarded-For": `6.6.6.6, ${ip}` };
  return new Request("https://shop.example/pay", { method: "POST", headers });
}

// covers: 003-03
test("the parts are there: configurations by name, check, blocklist and middlewares", () => {
  assert.equal(Object.keys(RATE_LIMIT_CONFIGS).length, 21);
  const { action, maxAttempts, windowMinutes, blockDurationMinutes }: RateLimitConfig =
    RATE_LIMIT_CONFIGS.GDPR_FORGET;
  assert.deepEqual([action, maxAttempts, windowMinutes, blockDurationMinutes], [
    "gdpr_forget",
    5,
    60,
    120,
  ]);
});

// covers: 003-35, 003-36, 003-41
test("the full middleware returns null, then a ready 429 with the CORS headers", async () => {
  const call = () =>
    rateLimitMiddleware(catraca, request("203.0.113.1"), RATE_LIMIT_CONFIGS.GDPR_FORGET, CORS);
  for (let attempt = 1; attempt <= 5; attempt += 1) assert.equal(await call(), null);
  const denied = await call();
  assert.equal(denied?.status, 429);
  assert.equal(denied?.headers.get("access-control-allow-origin"), "https://shop.example");
  assert.match(denied?.headers.get("access-control-expose-headers") ?? "", /Retry-After/);
  const retryAfter = Number(denied?.headers.get("retry-after"));
  assert.ok(retryAfter > 7_190 && retryAfter <= 7_200);
  assert.deepEqual(await denied?.json(), { error: "Rate limit exceeded", retryAfter });
});

// covers: 003-38
test("a blocklisted address passes the limits-only middleware and not the full one", async () => {
  const config = RATE_LIMIT_CONFIGS.STRIPE_CREATE_PAYMENT;
  const blocked = request("203.0.113.2");
  await addToBlocklist(admin, "203.0.113.2", { reason: "carding" });
  assert.equal((await rateLimitMiddleware(catraca, blocked, config, CORS))?.status, 403);
  assert.equal(await rateLimitOnlyMiddleware(catraca, blocked, config, CORS), null);

  const [entry] = await listBlocklist(admin);
  assert.match(entry?.ip_address ?? "", /^203\.0\.113\.2/);
  assert.deepEqual([entry?.reason, entry?.expires_at], ["carding", null]);
  assert.equal(await removeFromBlocklist(admin, "203.0.113.2"), true);
  assert.equal(await removeFromBlocklist(admin, "203.0.113.2"), false);
  assert.equal(await rateLimitMiddleware(catraca, blocked, config, CORS), null);
});

// covers: 003-39, 003-40
test("a manual check by the client's address gives allowed and retryAfter", async () => {
  const config = RATE_LIMIT_CONFIGS.BUYER_AUTH_LOGIN;
  const identifier = getClientIP(request("203.0.113.3"));
  assert.equal(identifier, "203.0.113.3", "what a client writes first is not its address");
  for (let attempt = 1; attempt <= 10; attempt += 1) {
    const result = await checkRateLimit(catraca, identifier, config);
    assert.deepEqual([result.allowed, result.retryAfter], [true, null]);
  }
  const denied = await checkRateLimit(catraca, identifier, config);
  assert.equal(denied.allowed, false);
  assert.ok(denied.retryAfter !== null && denied.retryAfter > 1_790);
  assert.ok(Number.isInteger(denied.retryAfter));
});

test("while Catraca does not answer, requests pass unless the client says otherwise", async () => {
  const config = RATE_LIMIT_CONFIGS.GDPR_FORGET;
  const url = "http://127.0.0.1:1";
  const away = new Catraca({ url });
  assert.equal(await rateLimitMiddleware(away, request("203.0.113.4"), config, CORS), null);
  assert.equal(await rateLimitOnlyMiddleware(away, request("203.0.113.4"), config, CORS), null);
  const { allowed, decision } = await checkRateLimit(away, "203.0.113.4", config);
  assert.deepEqual([allowed, decision.degraded, decision.reason], [true, true, "unavailable"]);
  const closed = new Catraca({ url, onFailure: "closed" });
  const denied = await rateLimitMiddleware(closed, request("203.0.113.4"), config, CORS);
  assert.equal(denied?.status, 503);
  const error = new Catraca({ url, onFailure: "error" });
  await assert.rejects(checkRateLimit(error, "203.0.113.4", config), { name: "UnavailableError" });
});
