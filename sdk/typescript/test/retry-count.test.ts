// The retries of acquireLock, with a fake timer and a client that always meets another holder.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestContext } from "node:test";

import type { Catraca, LockConflict } from "@catraca/client";
import { OptimisticLockService } from "@catraca/client/booking";

const CONFLICT = { granted: false, holder: { version: 7, expires_at: null } } as LockConflict;

/** The instants of all attempts in milliseconds, if each wait takes as long as it says. */
function attemptTimes(t: TestContext, random: number) {
  t.mock.method(Math, "random", () => random);
  const times: number[] = [];
  let now = 0;
  const wait = (run: () => void, ms: number) => {
    now += ms;
    queueMicrotask(run);
  };
  t.mock.method(globalThis, "setTimeout", wait as typeof setTimeout);
  const acquireLock = async () => (times.push(now), CONFLICT);
  return { times, locks: new OptimisticLockService({ acquireLock } as unknown as Catraca) };
}

// covers: 004-26, B-75
test("two retries are made at 100 and 300 ms, with a quarter of jitter, then it is a conflict", async (t) => {
  for (const [random, expected] of [
    [0, [0, 75, 225]],
    [0.5, [0, 100, 300]],
    [0.999, [0, 125, 375]],
  ] as const) {
    const { times, locks } = attemptTimes(t, random);
    const options = { retryCount: 2, retryDelay: 100 };
    const result = await locks.acquireLock("order", 1, options);
    assert.deepEqual(times.map(Math.round), expected);
    assert.deepEqual([result.success, result.conflict, result.version], [false, true, 7]);
    t.mock.restoreAll();
  }
});

test("without a retryCount there is one attempt, and the delay is 100 ms by default", async (t) => {
  const once = attemptTimes(t, 0.5);
  await once.locks.acquireLock("order", 1);
  assert.deepEqual(once.times, [0]);
  t.mock.restoreAll();
  const { times, locks } = attemptTimes(t, 0.5);
  await locks.acquireLock("order", 1, { retryCount: 3 });
  assert.deepEqual(times, [0, 100, 300, 700]);
});

// covers: 004-81
test("the caller's deadline ends the retries", async () => {
  const controller = new AbortController();
  let attempts = 0;
  const acquireLock = async () => {
    attempts += 1;
    // The deadline passes while the third attempt is under way.
    if (attempts === 3) controller.abort(new Error("the deadline has passed"));
    return CONFLICT;
  };
  const locks = new OptimisticLockService({ acquireLock } as unknown as Catraca);
  const options = { retryCount: 1_000, retryDelay: 1, signal: controller.signal };
  await assert.rejects(locks.acquireLock("order", 1, options), /the deadline has passed/);
  assert.equal(attempts, 3);
});
