// What the client adds to a bare `fetch` of the same call.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Catraca } from "@catraca/client";
import type { Decision } from "@catraca/client";

import { startServer } from "./support/server.js";

const ROUNDS = 25;
const CALLS = 120;
/** The goal is 1.15; a busy machine shows more. */
const MOST_RATIO = 1.5;

test("the overhead per check, next to a bare fetch", async () => {
  const server = await startServer();
  const { url, keys } = server;
  const catraca = new Catraca({ url, key: keys.check, deadlineMs: 5_000 });
  const subject = { ip: "198.51.100.7", tenant: "t1" };
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${keys.check}` };
  const bare = async (): Promise<Decision> => {
    const body = JSON.stringify({ gate: "search", subject });
    const response = await fetch(`${url}/v1/check`, { method: "POST", headers, body });
    return (await response.json()) as Decision;
  };
  const client = () => catraca.check("search", subject);

  // In turns, so that other programs on the machine disturb both alike.
  const bareTimes: Times[] = [];
  const clientTimes: Times[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    bareTimes.push(await time(bare));
    clientTimes.push(await time(client));
  }
  await server.stop();
  // Other programs on the machine lengthen the time of a round more than its processor time.
  for (const [kind, read] of [
    ["time", ({ ms }: Times) => ms],
    ["processor time", ({ cpuMs }: Times) => cpuMs],
  ] as const) {
    const bareMs = median(bareTimes.map(read));
    const clientMs = median(clientTimes.map(read));
    const micros = (ms: number) => `${((ms / CALLS) * 1000).toFixed(0)} us`;
    console.log(
      `overhead of typescript, ${kind}: bare fetch (undici) ${micros(bareMs)}, ` +
        `check ${micros(clientMs)}, ratio of the medians ${(clientMs / bareMs).toFixed(3)} ` +
        `(${ROUNDS} rounds of ${CALLS} calls)`,
    );
  }
  // The fastest rounds are the least disturbed ones.
  const least = (times: Times[]) => Math.min(...times.map(({ ms }) => ms));
  const fastest = least(clientTimes) / least(bareTimes);
  assert.ok(fastest < MOST_RATIO, `ratio of the fastest rounds ${fastest}`);
});

function median(times: number[]): number {
  return [...times].sort((a, b) => a - b)[times.length >> 1] ?? NaN;
}

/** What a round took, on the clock and of the processor. */
interface Times {
  ms: number;
  cpuMs: number;
}

async function time(call: () => Promise<Decision>): Promise<Times> {
  const cpuBefore = process.cpuUsage();
  const started = performance.now();
  for (let n = 0; n < CALLS; n += 1) assert.ok((await call()).allowed);
  const ms = performance.now() - started;
  const { user, system } = process.cpuUsage(cpuBefore);
  return { ms, cpuMs: (user + system) / 1000 };
}
