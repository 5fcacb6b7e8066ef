// Decisions of the real server through the client.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Catraca, CatracaError } from "@catraca/client";

import { startProxy } from "./support/proxy.js";
import type { TestProxy } from "./support/proxy.js";
import { startServer } from "./support/server.js";
import type { TestServer } from "./support/server.js";

let server: TestServer;
let proxy: TestProxy;
let catraca: Catraca;

before(async () => {
  server = await startServer();
  proxy = await startProxy(server.url);
  const key = server.keys.check;
  catraca = new Catraca({ url: proxy.url, key, deadlineMs: 5_000, caller: "shop/1.2" });
});

after(async () => {
  await proxy.close();
  await server.stop();
});

test("a check is allowed until the limit, and a denial says how long to wait", async () => {
  const subject = { ip: "198.51.100.1" };
  for (const remaining of [2, 1, 0]) {
    const decision = await catraca.check("login", subject);
    assert.deepEqual([decision.allowed, decision.remaining], [true, remaining]);
  }
  const denied = await catraca.check("login", subject);
  assert.equal(denied.allowed, false);
  assert.equal(denied.reason, "over_limit");
  assert.ok(denied.retry_after_ms !== null && denied.retry_after_ms > 59_000);
});

test("a cost is charged, and a peek charges nothing", async () => {
  const subject = { ip: "198.51.100.2" };
  assert.equal((await catraca.check("login", subject, { cost: 2 })).remaining, 1);
  assert.equal((await catraca.peek("login", subject)).remaining, 1);
  assert.equal((await catraca.peek("login", subject)).remaining, 1);
  assert.equal((await catraca.check("login", subject)).allowed, true);
});

test("a settle charges by the outcome, by ticket or by reference", async () => {
  const subject = { ip: "198.51.100.3" };
  const decision = await catraca.check("failures", subject, { ref: "r1" });
  const settled = await catraca.settle(decision, { status: 401 });
  assert.equal(settled?.state, "settled");
  assert.equal(settled?.policies[0]?.charged, 50);
  const again = await catraca.settle({ ref: "r1", subject }, { status: 401 });
  assert.equal(again?.state, "again");
});

test("a decision without a ticket has nothing to settle", async () => {
  const decision = await catraca.check("login", { ip: "198.51.100.4" });
  assert.equal(decision.ticket, null);
  assert.equal(await catraca.settle(decision, { status: 200 }), null);
});

test("a credit gives units back once", async () => {
  const subject = { payer: "ana" };
  const decision = await catraca.check("lookups", subject, { ref: "e2e-1" });
  await catraca.settle(decision, { status: 200 });
  assert.equal((await catraca.credit("e2e-1", "payment", subject)).applied, true);
  assert.equal((await catraca.credit("e2e-1", "payment", subject)).reason, "duplicate");
});

test("a wrong gate, a wrong key and a missing attribute are errors, not decisions", async () => {
  const ip = "198.51.100.5";
  await assert.rejects(catraca.check("logn", { ip }), { code: "unknown-gate", httpStatus: 404 });
  const stranger = new Catraca({ url: server.url, key: "wrong" });
  await assert.rejects(stranger.check("login", { ip }), { code: "unknown-key", httpStatus: 401 });
  await assert.rejects(catraca.check("search", { ip }), (error) => error instanceof CatracaError);
});

test("calls name the calling program", async () => {
  await catraca.check("login", { ip: "198.51.100.6" });
  assert.equal(proxy.lastHeaders["catraca-caller"], "shop/1.2");
  for (const caller of ["a\r\nb", "a@b", "", "x".repeat(65)]) {
    assert.throws(() => new Catraca({ url: server.url, caller }), TypeError);
  }
});

test("attributes that are undefined are not sent", async () => {
  await catraca.check("login", { ip: "198.51.100.7", tenant: undefined });
  const { subject } = JSON.parse(proxy.lastBody) as { subject: object };
  assert.deepEqual(subject, { ip: "198.51.100.7" });
});
