// The signal and the deadline of a call, of all calls that take them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Catraca, UnavailableError } from "@catraca/client";
import type { CallBounds } from "@catraca/client";

import { startProxy } from "./support/proxy.js";
import type { TestProxy } from "./support/proxy.js";
import { startServer } from "./support/server.js";
import type { TestServer } from "./support/server.js";

const SUBJECT = { ip: "198.51.100.7" };
const RANGE = { start: new Date("2030-01-07T10:00:00Z"), end: new Date("2030-01-07T10:30:00Z") };
const SLOT = { calendar: "ana", ...RANGE };
const DAY = { calendar: "ana", from: RANGE.start, to: RANGE.end };
const LEASE = "lease";

const CALLS: Record<string, (catraca: Catraca, bounds: CallBounds) => Promise<unknown>> = {
  check: (catraca, bounds) => catraca.check("login", SUBJECT, bounds),
  peek: (catraca, bounds) => catraca.peek("login", SUBJECT, bounds),
  settle: (catraca, bounds) => catraca.settle("ticket", { status: 200 }, bounds),
  credit: (catraca, bounds) => catraca.credit("r", "payment", SUBJECT, bounds),
  acquireLock: (catraca, bounds) => catraca.acquireLock("order", bounds),
  renewLock: (catraca, bounds) => catraca.renewLock(LEASE, undefined, bounds),
  releaseLock: (catraca, bounds) => catraca.releaseLock(LEASE, bounds),
  withLock: (catraca, bounds) => catraca.withLock("order", () => 1, bounds),
  holdSlot: (catraca, bounds) => catraca.holdSlot(SLOT, bounds),
  confirmSlot: (catraca, bounds) => catraca.confirmSlot(LEASE, false, bounds),
  cancelSlot: (catraca, bounds) => catraca.cancelSlot(LEASE, bounds),
  calendar: (catraca, bounds) => catraca.calendar(DAY, bounds),
  withSlot: (catraca, bounds) => catraca.withSlot(SLOT, () => 1, bounds),
  verify: (catraca, bounds) => catraca.verify(["login"], bounds),
};

let server: TestServer;
let proxy: TestProxy;
let catraca: Catraca;

/** Answers never arrive, and the deadline of the client is longer than this test may take. */
before(async () => {
  server = await startServer();
  proxy = await startProxy(server.url);
  proxy.mode = "lose";
  const options = { url: proxy.url, key: server.keys.check, deadlineMs: 600_000 };
  catraca = new Catraca({ ...options, onUnavailable: () => {}, onWarning: () => {} });
});

after(async () => {
  await proxy.close();
  await server.stop();
});

for (const [name, call] of Object.entries(CALLS)) {
  test(`${name}: its signal and its deadline end the call`, async () => {
    const controller = new AbortController();
    const reason = new Error("the client has gone");
    const aborted = call(catraca, { signal: controller.signal });
    controller.abort(reason);
    await assert.rejects(aborted, reason);
    const late = call(catraca, { deadlineMs: 50 });
    if (name !== "verify") return assert.rejects(late, UnavailableError);
    assert.deepEqual(((await late) as { code: string }[]).map(({ code }) => code), ["unavailable"]);
  });
}

test("verify: a signal that aborts between its calls rejects too", async () => {
  const controller = new AbortController();
  const reason = new Error("the program ends");
  const stopping = (async (...call: Parameters<typeof fetch>) => {
    const answer = await fetch(...call);
    controller.abort(reason);
    return answer;
  }) as typeof fetch;
  const { url, keys } = server;
  const client = new Catraca({ url, key: keys.check, deadlineMs: 600_000, fetch: stopping });
  await assert.rejects(client.verify(["login"], { signal: controller.signal }), reason);
});
