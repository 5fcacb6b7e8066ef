// The shapes of a booking site's middleware and routes, over presets/booking.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Catraca } from "@catraca/client";
import {
  OptimisticLockService,
  RateLimitService,
  createLockConflictResponse,
  createRateLimitResponse,
  gateOfPath,
} from "@catraca/client/booking";
import type { RateLimitResult } from "@catraca/client/booking";

import { preset, startServer } from "./support/server.js";
import type { TestServer } from "./support/server.js";

let server: TestServer;
let limits: RateLimitService;
let adminLimits: RateLimitService;
let locks: OptimisticLockService;
let others: OptimisticLockService;
let adminLocks: OptimisticLockService;
let operator: Catraca;

before(async () => {
  server = await startServer(preset("booking"));
  const options = { url: server.url, deadlineMs: 5_000, blockCache: false } as const;
  const catraca = new Catraca({ ...options, key: server.keys.check });
  const admin = new Catraca({ ...options, key: server.keys.admin });
  operator = admin;
  limits = new RateLimitService(catraca);
  adminLimits = new RateLimitService(admin);
  locks = new OptimisticLockService(catraca);
  others = new OptimisticLockService(catraca);
  adminLocks = new OptimisticLockService(admin);
});

after(() => server.stop());

interface AuditPage {
  acts: { by: string; act: string; target: string; why: string | null }[];
}

interface PolicyNames {
  policies: { policy: string }[];
}

function request(ip: string): Request {
  return new Request("https://shop.example/", { headers: { "X-Forwarded-For": ip } });
}

/** Repeats a call until it is denied. */
async function exhaust(call: () => Promise<RateLimitResult | null>): Promise<RateLimitResult> {
  for (let count = 0; count < 1_000; count += 1) {
    const result = await call();
    if (result?.conflict) return result;
  }
  throw new Error("nothing was denied");
}

// covers: 004-08
test("globalRateLimit is null when allowed, and a result when denied", async () => {
  const call = () => limits.globalRateLimit(request("203.0.113.1"));
  assert.equal(await call(), null);
  // All at once, so that the burst of 100 a second is exceeded on any machine.
  const results = await Promise.all(Array.from({ length: 650 }, call));
  const denied = results.find((result) => result !== null);
  assert.equal(denied?.conflict, true);
  assert.equal(denied?.decision.policy, "global");
});

// covers: 004-09
test("publicRateLimit counts address, tenant and slug together", async () => {
  const call = (slug: string) => limits.publicRateLimit(request("203.0.113.2"), "t1", slug);
  assert.equal((await call("ana")).conflict, false);
  assert.equal((await exhaust(() => call("ana"))).decision.policy, "public");
  assert.equal((await call("bia")).conflict, false);
});

// covers: 004-10
test("endpointRateLimit applies the endpoint's limits; its denial has all headers", async () => {
  const call = () => limits.endpointRateLimit(request("203.0.113.3"), "LOGIN", "t1");
  const denied = await exhaust(call);
  assert.equal(denied.decision.policy, "login_client");
  const response = createRateLimitResponse(denied);
  assert.equal(response.status, 429);
  const body = (await response.json()) as Record<string, unknown>;
  assert.deepEqual([body.conflict, body.retryAfter], [true, denied.retryAfter]);
  assert.match(String(body.error), /^Houve tentativas demais de entrar. Aguarde \d+ segundo/);
  for (const name of ["Limit", "Remaining", "Reset"]) {
    assert.match(response.headers.get(`X-RateLimit-${name}`) ?? "", /^\d+$/);
  }
  const another = await limits.endpointRateLimit(request("203.0.113.4"), "LOGIN", "t1");
  assert.equal(another.conflict, false);
});

// covers: 004-12
test("clearAllRateLimits resets every policy, for admins alone, with an audit", async () => {
  const call = () => limits.endpointRateLimit(request("203.0.113.5"), "PAYMENTS", "t1");
  await exhaust(call);
  await assert.rejects(limits.clearAllRateLimits("tests"), { code: "role-too-low" });
  await adminLimits.clearAllRateLimits("a new season");
  assert.equal((await call()).conflict, false);
  const { acts } = await operator.request<AuditPage>("GET", "/v1/audit");
  const resets = acts.filter((act) => act.why === "a new season");
  assert.deepEqual(new Set(resets.map(({ by, act }) => `${by} ${act}`)), new Set(["admin reset"]));
  const { policies } = await operator.request<PolicyNames>("GET", "/v1/policies");
  const names = (list: string[]) => [...list].sort();
  const cleared = names(resets.map((act) => act.target));
  assert.deepEqual(cleared, names(policies.map((row) => row.policy)));
  assert.ok(!acts.some((act) => act.by === "check"), "the refused call changed nothing");
  const stats = await adminLimits.getRateLimitStats();
  const { total, limited, success } = stats.global;
  assert.equal(total, limited + success);
  assert.ok(limited > 0 && (stats.endpoints.LOGIN?.limited ?? 0) > 0);
});

test("while Catraca does not answer, requests pass unless the client says otherwise", async () => {
  const url = "http://127.0.0.1:1";
  const away = new RateLimitService(new Catraca({ url }));
  assert.equal(await away.globalRateLimit(request("203.0.113.6")), null);
  const login = await away.endpointRateLimit(request("203.0.113.6"), "LOGIN", "t1");
  assert.deepEqual([login.conflict, login.decision.degraded], [false, true]);
  const closed = new RateLimitService(new Catraca({ url, onFailure: "closed" }));
  assert.equal((await closed.globalRateLimit(request("203.0.113.6")))?.conflict, true);
});

// covers: 004-17, 004-18
test("the gate of a path is that of the routes of the preset", () => {
  const gates = ["/api/appointments/7", "/api/services", "/api/employees/x", "/api/auth/login"];
  assert.deepEqual(gates.map(gateOfPath), ["appointments", "pages", "pages", "login"]);
  assert.deepEqual(["/", "/api/servicesX"].map(gateOfPath), ["global", "global"]);
});

const START = new Date("2030-01-07T10:00:00Z");
const END = new Date("2030-01-07T10:30:00Z");
const MINUTES = 30;

// covers: 004-27, 004-33
test("acquireLock gives success, version, fence and expiry; only its owner ends it", async () => {
  const key = OptimisticLockService.generateAppointmentLockKey("t1", "shop", "ana", START, END);
  assert.equal(key, "lock:appointment:t1:shop:ana:1894010400000-1894012200000");
  const version = Date.now();
  const lock = await locks.acquireLock(key, version, { ttl: 10_000 });
  assert.deepEqual([lock.success, lock.version, lock.conflict], [true, version, false]);
  assert.ok(lock.fence !== null && lock.expiresAt !== null && lock.expiresAt > Date.now());

  const refused = await others.acquireLock(key, version + 1);
  assert.deepEqual([refused.success, refused.conflict, refused.fence], [false, true, null]);
  const response = createLockConflictResponse(refused);
  assert.equal(response.status, 409);
  assert.equal(response.headers.get("x-lock-version"), String(version));
  assert.equal(await others.releaseLock(key, refused.version), false, "a version frees nothing");
  assert.equal(await others.renewLock(key, refused.version), false);

  assert.equal(await locks.renewLock(key, version), true);
  assert.equal(await locks.releaseLock(key, version), true);
  assert.equal(await locks.releaseLock(key, version), false);
});

// covers: 004-30, B-62
test("availability leaves out one's own lock, and overlapping ranges conflict", async () => {
  const key = OptimisticLockService.generateAppointmentLockKey("t1", "shop", "bia", START, END);
  const look = (service: OptimisticLockService) =>
    service.checkTimeSlotAvailability("t1", "shop", "bia", START, MINUTES);
  assert.equal((await look(locks)).available, true);
  await locks.acquireLock(key, 1);
  assert.equal((await look(locks)).available, true);
  assert.equal((await look(others)).available, false);
  const late = new Date(START.getTime() + 15 * 60_000);
  const end = new Date(END.getTime() + 15 * 60_000);
  const overlap = OptimisticLockService.generateAppointmentLockKey("t1", "shop", "bia", late, end);
  assert.equal((await others.acquireLock(overlap, 2)).success, false);
  assert.equal(await locks.confirmLock(key, 1), true);
  assert.equal((await others.acquireLock(key, 3)).success, false);
});

// covers: 004-56
test("retries, their delay and the TTL are accepted per call, within the maxima", async () => {
  const key = OptimisticLockService.generatePaymentLockKey("t1", "p-1");
  const held = await locks.acquireLock(key, 1, { ttl: 15_000, retryCount: 3, retryDelay: 200 });
  assert.equal(held.success, true);
  const options = { ttl: 15_000, retryCount: 3, retryDelay: 10 };
  const waiting = others.acquireLock(key, 2, options);
  assert.equal((await waiting).success, false, "10, 20 and 40 ms are shorter than the lease");
  await locks.releaseLock(key, 1);
  assert.equal((await others.acquireLock(key, 3, options)).success, true);
  await assert.rejects(locks.acquireLock("other", 4, { ttl: 3_600_000 }));
});

test("keys with colons do not collide, and clearTenantLocks counts one tenant's", async () => {
  const one = OptimisticLockService.generateResourceLockKey("t2", "a:b", "c");
  const two = OptimisticLockService.generateResourceLockKey("t2", "a", "b:c");
  assert.notEqual(one, two);
  assert.equal((await locks.acquireLock(one, 1)).success, true);
  assert.equal((await locks.acquireLock(two, 1)).success, true);
  assert.equal(await adminLocks.clearTenantLocks("t2"), 2);
  const stats = await adminLocks.getLockStats();
  assert.equal(stats.total, stats.success + stats.conflicts);
});
