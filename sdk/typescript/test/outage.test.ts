// The server is killed and started again while several callers check.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Catraca, UnavailableError } from "@catraca/client";
import type { FailureMode } from "@catraca/client";

import { startServer } from "./support/server.js";
import { waitUntil } from "./support/wait.js";

const DEADLINE_MS = 250;
const CALLERS = 8;
const RECOVERY_MS = 1_000;
/** How much later than its deadline a call may end on an idle machine. */
const LATE_MS = 100;
/** How often a call waits for the thread after its deadline: timer, abort, and caller. */
const WAKEUPS = 3;
const PAUSE_STEP_MS = 1;

/** What a caller got: a decision of the server, or what the failure mode made of its lack. */
type Answer = "decided" | FailureMode | "wrong";

interface Sample {
  at: number;
  tookMs: number;
  answer: Answer;
}

async function ask(catraca: Catraca, ip: string): Promise<Answer> {
  try {
    const { allowed, degraded, reason } = await catraca.check("search", { ip, tenant: "t1" });
    if (!degraded) return "decided";
    if (reason !== "unavailable") return "wrong";
    return allowed ? "open" : "closed";
  } catch (error) {
    return error instanceof UnavailableError ? "error" : "wrong";
  }
}

/** Calls from several callers at once, and the longest time in which this thread did not run. */
class Load {
  readonly samples: Sample[] = [];
  longestPauseMs = 0;
  #isRunning = true;
  readonly #loops: Promise<void>[];

  constructor(catraca: Catraca) {
    const callers = Array.from({ length: CALLERS }, (_, number) => this.#call(catraca, number));
    this.#loops = [...callers, this.#measurePauses()];
  }

  count(isCounted: (sample: Sample) => boolean): number {
    return this.samples.filter(isCounted).length;
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#loops);
  }

  async #call(catraca: Catraca, number: number): Promise<void> {
    while (this.#isRunning) {
      const started = performance.now();
      const answer = await ask(catraca, `203.0.113.${number}`);
      const at = performance.now();
      this.samples.push({ at, tookMs: at - started, answer });
      // Other work of the program gets its turn while calls fail at once.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async #measurePauses(): Promise<void> {
    while (this.#isRunning) {
      const started = performance.now();
      await new Promise((resolve) => setTimeout(resolve, PAUSE_STEP_MS));
      const pause = performance.now() - started - PAUSE_STEP_MS;
      this.longestPauseMs = Math.max(this.longestPauseMs, pause);
    }
  }
}

for (const onFailure of ["error", "open", "closed"] as const) {
  //
  test(`an outage under load: ${onFailure}, within the deadline, and recovers`, async () => {
    const server = await startServer();
    const { url, keys } = server;
    const catraca = new Catraca({ url, key: keys.check, deadlineMs: DEADLINE_MS, onFailure });
    const load = new Load(catraca);
    await waitUntil("200 checks", () => load.samples.length >= 200);
    await server.kill();
    const isByMode = (one: Sample) => one.answer === onFailure;
    await waitUntil("50 answers of the mode", () => load.count(isByMode) >= 50);
    await server.restart();
    const readyAt = performance.now();
    const isBack = (one: Sample) => one.at > readyAt && one.answer === "decided";
    await waitUntil("200 decisions after the start", () => load.count(isBack) >= 200);
    await load.stop();
    await server.stop();

    const { samples, longestPauseMs } = load;
    const longest = Math.max(...samples.map((one) => one.tookMs));
    const recovery = (samples.find(isBack)?.at ?? Infinity) - readyAt;
    console.log(
      `outage, ${onFailure}: ${samples.length} checks, ${load.count(isByMode)} by the mode, ` +
        `longest call ${longest.toFixed(0)} ms, longest pause ${longestPauseMs.toFixed(0)} ms, ` +
        `first decision ${recovery.toFixed(0)} ms after the start`,
    );
    const slackMs = LATE_MS + WAKEUPS * longestPauseMs;
    const isExpected = ({ answer }: Sample) => answer === "decided" || answer === onFailure;
    assert.ok(samples.every(isExpected), "an answer that is neither decided nor of the mode");
    assert.ok(longest < DEADLINE_MS + slackMs, `a call took ${longest} ms`);
    assert.ok(recovery < RECOVERY_MS + slackMs, `decided ${recovery} ms after the start`);
  });
}
