// The calls of a booking site as functions, over a client for the whole program.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Catraca } from "@catraca/client";
import {
  OptimisticLockService,
  acquireLock,
  bookTimeSlot,
  checkTimeSlotAvailability,
  clearAllRateLimits,
  confirmLock,
  createLockConflictResponse,
  endpointRateLimit,
  generateAppointmentLockKey,
  generateResourceLockKey,
  globalRateLimit,
  publicRateLimit,
  releaseLock,
  renewLock,
  useCatraca,
} from "@catraca/client/booking";

import { startProxy } from "./support/proxy.js";
import { preset, startServer } from "./support/server.js";
import type { TestServer } from "./support/server.js";

const START = new Date("2030-01-07T10:00:00Z");
const MINUTES = 30;
const END = new Date(START.getTime() + MINUTES * 60_000);
const FLOW = { ttl: 10_000, retryCount: 2, retryDelay: 100 };

let server: TestServer;
let others: OptimisticLockService;

/** As a program does that sets only the environment. */
before(async () => {
  server = await startServer(preset("booking"));
  process.env.CATRACA_URL = server.url;
  process.env.CATRACA_KEY = server.keys.check;
  others = new OptimisticLockService(new Catraca({ deadlineMs: 5_000 }));
});

after(() => server.stop());

function visit(ip: string): Request {
  return new Request("https://shop.example/", { headers: { "X-Forwarded-For": ip } });
}

// covers: 004-08, 004-09, 004-10
test("the limits are functions of a request, with the client of the environment", async () => {
  assert.equal(await globalRateLimit(visit("203.0.113.20")), null);
  const page = await publicRateLimit(visit("203.0.113.20"), "t1", "ana");
  assert.deepEqual([page.conflict, page.limit, page.decision.degraded], [false, 10, false]);
  const login = () => endpointRateLimit(visit("203.0.113.20"), "LOGIN", "t1");
  const results = await Promise.all(Array.from({ length: 6 }, login));
  assert.equal(results.filter((result) => result.conflict).length, 1, "five a second");
});

// covers: 004-12
test("clearAllRateLimits needs a key of the role admin", async () => {
  await assert.rejects(clearAllRateLimits("tests"), { code: "role-too-low" });
  useCatraca(new Catraca({ key: server.keys.admin, deadlineMs: 5_000 }));
  await clearAllRateLimits("tests");
  useCatraca(new Catraca({ deadlineMs: 5_000 }));
});

interface Flow {
  create?: () => object;
  /** What happens between the first look and the lock. */
  between?: () => Promise<unknown>;
  /** By default that of the appointment. */
  key?: string;
}

/** The route of such a site: look, acquire, look, create, end the lock. */
async function book(
  employee: string,
  end: (key: string, version: number) => Promise<boolean>,
  flow: Flow = {},
): Promise<Response> {
  const { create = () => ({ employee }), between } = flow;
  const look = () => checkTimeSlotAvailability("t1", "shop", employee, START, MINUTES);
  const taken = () => Response.json({ error: "taken", conflict: true }, { status: 409 });
  if (!(await look()).available) return taken();
  await between?.();
  const key = flow.key ?? generateAppointmentLockKey("t1", "shop", employee, START, END);
  const version = Date.now();
  const lock = await acquireLock(key, version, FLOW);
  if (!lock.success) return createLockConflictResponse(lock);
  try {
    if (!(await look()).available) {
      await releaseLock(key, version);
      return taken();
    }
    const appointment = create();
    await end(key, version);
    return Response.json(appointment, { status: 201 });
  } catch (error) {
    await releaseLock(key, version);
    throw error;
  }
}

// covers: 004-37, 004-38, 004-40, 004-41
test("the five steps of a booking: confirmLock keeps the time, and an error frees it", async () => {
  const fail = () => {
    throw new Error("the database failed");
  };
  await assert.rejects(book("ana", confirmLock, { create: fail }), /the database failed/);
  const [one, two] = await Promise.all([book("ana", confirmLock), others.acquireLock("x", 1)]);
  assert.deepEqual([one.status, two.success], [201, true], "the time was free at once");
  const again = await book("ana", confirmLock);
  const { conflict } = (await again.json()) as { conflict: boolean };
  assert.deepEqual([again.status, conflict], [409, true]);
});

/** Books the time of an employee as another program does. */
async function bookElsewhere(employee: string): Promise<void> {
  const key = generateAppointmentLockKey("t1", "shop", employee, START, END);
  assert.equal((await others.acquireLock(key, 1)).success, true);
  assert.equal(await others.confirmLock(key, 1), true);
}

// covers: 004-39
test("a booking that is stored after the first look is a 409, and the lock is free again", async () => {
  const create = () => assert.fail("the time is taken");
  const between = () => bookElsewhere("edu");
  const met = await book("edu", confirmLock, { create, between });
  assert.equal(met.status, 409, "the lock of an appointment is on its time");
  // A lock on a name does not exclude that booking: the look under the lock finds it.
  const key = generateResourceLockKey("t1", "calendar", "fabio");
  const found = await book("fabio", releaseLock, {
    create,
    between: () => bookElsewhere("fabio"),
    key,
  });
  const { error } = (await found.json()) as { error: string };
  assert.deepEqual([found.status, error], [409, "taken"]);
  assert.equal((await others.acquireLock(key, 2)).success, true, "released");
});

// covers: B-67
test("an appointment that was stored is a 201, also if its lock cannot be ended", async () => {
  const proxy = await startProxy(server.url);
  const codes: string[] = [];
  const onWarning = ({ code }: { code: string }) => void codes.push(code);
  useCatraca(new Catraca({ url: proxy.url, deadlineMs: 5_000, onWarning }));
  proxy.path = "/v1/slots/confirm";
  const cut = () => ((proxy.mode = "error"), { stored: true });
  assert.equal((await book("gabi", confirmLock, { create: cut })).status, 201);
  proxy.mode = "pass";
  const slot = { tenant: "t1", calendar: "hugo", start: START, end: END };
  assert.equal((await bookTimeSlot(slot, cut)).status, 201);
  proxy.path = "/v1/slots/cancel";
  proxy.mode = "pass";
  assert.equal((await book("iris", releaseLock, { create: cut })).status, 201);
  assert.deepEqual(codes, ["confirm-failed", "confirm-failed", "release-failed"]);
  useCatraca(new Catraca({ deadlineMs: 5_000 }));
  await proxy.close();
});

test("with releaseLock as the last step the time is free again for others", async () => {
  assert.equal((await book("bia", releaseLock)).status, 201);
  const seen = await others.checkTimeSlotAvailability("t1", "shop", "bia", START, MINUTES);
  assert.equal(seen.available, true, "only the database of the site knows the booking");
  assert.equal((await book("bia", confirmLock)).status, 201);
});

// covers: 004-38
test("a lock of another caller is a conflict with its version, after the retries", async () => {
  const key = generateAppointmentLockKey("t1", "shop", "caio", START, END);
  const held = await others.acquireLock(key, 7);
  assert.equal(held.success, true);
  const late = new Date(START.getTime() + 15 * 60_000);
  const overlap = generateAppointmentLockKey("t1", "shop", "caio", late, END);
  const refused = await acquireLock(overlap, 8, { ...FLOW, retryDelay: 5 });
  assert.deepEqual([refused.success, refused.version], [false, 7]);
  assert.equal(await renewLock(key, 7), false, "a version proves nothing");
  assert.equal(await releaseLock(key, 7), false);
  assert.equal(await others.renewLock(key, 7, { ttl: 5_000 }), true);
});

test("bookTimeSlot is 201 or 409, and books for one of two", async () => {
  const slot = { tenant: "t1", calendar: "dora", start: START, end: END };
  const statuses = async () => (await bookTimeSlot(slot, ({ fence }) => ({ fence }))).status;
  assert.deepEqual((await Promise.all([statuses(), statuses()])).sort(), [201, 409]);
  const refused = await bookTimeSlot(slot, () => ({}));
  assert.equal(((await refused.json()) as { conflict: boolean }).conflict, true);
});
