// Locks and slots of the real server.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";

import { Catraca, LockLostError, LockTakenError, UnavailableError } from "@catraca/client";
import type { HeldLease, Warning } from "@catraca/client";

import { LeaseKeeper } from "../dist/esm/lease-keeper.js";
import { startProxy } from "./support/proxy.js";
import type { TestProxy } from "./support/proxy.js";
import { startServer } from "./support/server.js";
import type { TestServer } from "./support/server.js";
import { waitUntil } from "./support/wait.js";

let server: TestServer;
let proxy: TestProxy;
let catraca: Catraca;

before(async () => {
  server = await startServer();
  proxy = await startProxy(server.url);
  catraca = new Catraca({ url: proxy.url, key: server.keys.check, deadlineMs: 5_000 });
});

afterEach(() => {
  proxy.mode = "pass";
  proxy.path = null;
});

after(async () => {
  await proxy.close();
  await server.stop();
});

test("a lock excludes others until it is released, and conflicts are values", async () => {
  const lease = await catraca.acquireLock("order-1", { kind: "payment", ownerLabel: "worker 3" });
  assert.ok(lease.granted);
  const refused = await catraca.acquireLock("order-1", { kind: "payment" });
  assert.ok(!refused.granted);
  assert.equal(refused.holder.owner_label, "worker 3");
  const renewed = await catraca.renewLock(lease, 60_000);
  assert.ok(renewed && renewed.ttl_ms > 50_000);
  assert.equal((await catraca.releaseLock(lease)).outcome, "released");
  assert.equal(await catraca.renewLock(lease), null);
  assert.ok((await catraca.acquireLock("order-1", { kind: "payment" })).granted);
});

test("withLock holds the lock while its function runs, and releases it", async () => {
  const result = await catraca.withLock("order-2", async ({ fence, signal }) => {
    assert.ok(fence > 0 && !signal.aborted);
    await assert.rejects(catraca.withLock("order-2", () => 1), LockTakenError);
    return "done";
  });
  assert.equal(result, "done");
  await assert.rejects(
    catraca.withLock("order-2", () => {
      throw new Error("the payment failed");
    }),
    /the payment failed/,
  );
  const next = await catraca.acquireLock("order-2");
  assert.ok(next.granted, "a failed function releases too");
});

test("withLock renews while its function runs longer than the lease", async () => {
  await catraca.withLock(
    "order-3",
    async ({ signal }) => {
      const renewals = () => proxy.calls.filter((path) => path === "/v1/locks/renew").length;
      const before = renewals();
      await waitUntil("four renewals", () => renewals() >= before + 4);
      assert.equal(signal.aborted, false);
      assert.equal((await catraca.acquireLock("order-3")).granted, false);
    },
    { ttlMs: 600 },
  );
});

test("waiting callers get the lock one after another, with rising fences", async () => {
  let inside = 0;
  const fences: number[] = [];
  const enter = async ({ fence }: HeldLease) => {
    inside += 1;
    assert.equal(inside, 1);
    await new Promise((resolve) => setTimeout(resolve, 10));
    fences.push(fence);
    inside -= 1;
  };
  const callers = Array.from({ length: 5 }, () =>
    catraca.withLock("order-4", enter, { waitMs: 10_000 }),
  );
  await Promise.all(callers);
  assert.equal(new Set(fences).size, 5);
  assert.deepEqual(fences, [...fences].sort((a, b) => a - b));
});

test("the signal aborts when an operator ends the lease", async () => {
  const admin = new Catraca({ url: server.url, key: server.keys.admin });
  await catraca.withLock(
    "order-5",
    async ({ fence, signal }) => {
      await admin.request("DELETE", `/v1/locks/${fence}`, { reason: "test" });
      if (!signal.aborted) await new Promise((resolve) => (signal.onabort = resolve));
      assert.ok(signal.reason instanceof LockLostError);
    },
    { ttlMs: 600 },
  );
});

test("the signal aborts at the end of the lease while the server does not answer", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let attempts = 0;
  const keeper = new LeaseKeeper(3_000, performance.now(), async () => {
    attempts += 1;
    throw new UnavailableError("connection refused");
  });
  // Each renewal that fails schedules the next one in a microtask.
  for (let step = 0; step < 29; step += 1) {
    t.mock.timers.tick(100);
    await Promise.resolve();
    await Promise.resolve();
  }
  assert.equal(keeper.signal.aborted, false);
  assert.ok(attempts >= 5, `${attempts} attempts`);
  t.mock.timers.tick(100);
  assert.ok(keeper.signal.reason instanceof LockLostError);
});

test("withSlot books a range for one caller, and frees it if the work fails", async () => {
  const range = { calendar: "ana", start: "2030-01-07T10:00:00Z", end: "2030-01-07T10:30:00Z" };
  await assert.rejects(
    catraca.withSlot(range, () => {
      throw new Error("the card was refused");
    }),
    /the card was refused/,
  );
  const booked = await catraca.withSlot(range, ({ fence }) => fence);
  assert.ok(booked > 0);
  const overlap = { ...range, start: new Date("2030-01-07T10:15:00Z"), end: 1894013100000 };
  await assert.rejects(catraca.withSlot(overlap, () => 1), LockTakenError);
  const query = { calendar: "ana", from: "2030-01-07T09:00:00Z", to: "2030-01-07T12:00:00Z" };
  const view = await catraca.calendar(query);
  assert.deepEqual([view.available, view.busy.map((one) => one.state)], [false, ["confirmed"]]);
});

test("of two simultaneous bookings exactly one succeeds", async () => {
  const range = { calendar: "bia", start: "2030-01-07T10:00:00Z", end: "2030-01-07T10:30:00Z" };
  const book = () => catraca.withSlot(range, () => 201).catch(() => 409);
  assert.deepEqual((await Promise.all([book(), book()])).sort(), [201, 409]);
});

/** A client with the warnings that it has reported; calls of the path get no answer. */
function cutOff(path: string) {
  const warnings: Warning[] = [];
  const onWarning = (warning: Warning) => void warnings.push(warning);
  const key = server.keys.check;
  const client = new Catraca({ url: proxy.url, key, deadlineMs: 5_000, onWarning });
  proxy.path = path;
  const codes = () => warnings.map(({ code }) => code);
  return { client, codes, detail: () => warnings[0]?.detail ?? "" };
}

// covers: B-67
test("a release that fails after the work is a warning, and the result stays", async () => {
  const { client, codes, detail } = cutOff("/v1/locks/release");
  const result = await client.withLock("order-6", () => {
    proxy.mode = "error";
    return "paid";
  });
  assert.deepEqual([result, codes()], ["paid", ["release-failed"]]);
  assert.match(detail(), /503.*ends with its TTL/);
  const failed = client.withLock("order-7", () => {
    throw new Error("the payment failed");
  });
  await assert.rejects(failed, /the payment failed/);
  assert.equal(codes().length, 2);
});

// covers: B-67
test("a confirmation that fails after the work is a warning, and the result stays", async () => {
  const start = new Date("2030-01-08T10:00:00Z");
  const end = new Date("2030-01-08T10:30:00Z");
  const { client, codes } = cutOff("/v1/slots/confirm");
  const stored: number[] = [];
  const store = async ({ fence, lease }: HeldLease) => {
    stored.push(fence);
    if (stored.length === 1) proxy.mode = "error";
    else await catraca.cancelSlot(lease);
    return "stored";
  };
  assert.equal(await client.withSlot({ calendar: "eva", start, end }, store), "stored");
  assert.deepEqual(codes(), ["confirm-failed"]);
  proxy.mode = "pass";
  assert.equal(await client.withSlot({ calendar: "fay", start, end }, store), "stored");
  assert.deepEqual(codes(), ["confirm-failed", "confirm-failed"], "the hold had ended");
});

test("a hold that cannot be freed after a failure is a warning beside the error", async () => {
  const start = new Date("2030-01-08T10:00:00Z");
  const end = new Date("2030-01-08T10:30:00Z");
  const { client, codes } = cutOff("/v1/slots/cancel");
  const failed = client.withSlot({ calendar: "gil", start, end }, () => {
    proxy.mode = "error";
    throw new Error("the card was refused");
  });
  await assert.rejects(failed, /the card was refused/);
  assert.deepEqual(codes(), ["release-failed"]);
});
