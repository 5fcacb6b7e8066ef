// The server is killed and started again while several callers check.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Catraca } from "@catraca/client";

import { startServer } from "./support/server.js";
import { waitUntil } from "./support/wait.js";

const DEADLINE_MS = 250;
const CALLERS = 8;
const RECOVERY_MS = 1_000;
/** A busy machine may run a timer late. */
const SLACK_MS = 500;

interface Sample {
  at: number;
  tookMs: number;
  allowed: boolean;
  degraded: boolean;
}

for (const onFailure of ["open", "closed"] as const) {
  test(`an outage under load: fails ${onFailure}, within the deadline, and recovers`, async () => {
    const server = await startServer();
    const { url, keys } = server;
    const catraca = new Catraca({ url, key: keys.check, deadlineMs: DEADLINE_MS, onFailure });
    const samples: Sample[] = [];
    let running = true;
    const caller = async (number: number) => {
      while (running) {
        const started = performance.now();
        const subject = { ip: `203.0.113.${number}`, tenant: "t1" };
        const { allowed, degraded } = await catraca.check("search", subject);
        const at = performance.now();
        samples.push({ at, tookMs: at - started, allowed, degraded });
        // Other work of the program gets its turn while calls fail at once.
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const callers = Array.from({ length: CALLERS }, (_, number) => caller(number));

    await waitUntil("200 checks", () => samples.length >= 200);
    await server.kill();
    const killedAt = performance.now();
    const degradedCount = () => samples.filter((one) => one.degraded).length;
    await waitUntil("50 degraded checks", () => degradedCount() >= 50);
    await server.restart();
    const readyAt = performance.now();
    const recoveryEnd = readyAt + RECOVERY_MS + 300;
    await waitUntil("the time of a recovery", () => performance.now() > recoveryEnd);
    running = false;
    await Promise.all(callers);
    await server.stop();

    const longest = Math.max(...samples.map((one) => one.tookMs));
    assert.ok(longest < DEADLINE_MS + SLACK_MS, `a call took ${longest} ms`);
    const degraded = samples.filter((one) => one.degraded);
    assert.ok(degraded.every((one) => one.allowed === (onFailure === "open")));
    assert.ok(degraded.every((one) => one.at > killedAt - DEADLINE_MS - SLACK_MS));
    const last = Math.max(...degraded.map((one) => one.at)) - readyAt;
    assert.ok(last < RECOVERY_MS, `recovered ${last} ms after the server was ready`);
    console.log(
      `outage, ${onFailure}: ${samples.length} checks, ${degraded.length} degraded, ` +
        `longest ${longest.toFixed(0)} ms, last degraded ${last.toFixed(0)} ms after the start`,
    );
  });
}
