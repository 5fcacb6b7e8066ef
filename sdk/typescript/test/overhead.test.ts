// What the client adds to a bare `fetch` of the same call.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Catraca } from "@catraca/client";
import type { Decision } from "@catraca/client";

import { startServer } from "./support/server.js";

const ROUNDS = 15;
const CALLS = 200;
/** The goal is 15 %; a busy machine shows more. */
const LIMIT_PERCENT = 50;

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

  // In turns, and the fastest round of each: other programs on the machine disturb both alike.
  let bareMs = Infinity;
  let clientMs = Infinity;
  for (let round = 0; round < ROUNDS; round += 1) {
    bareMs = Math.min(bareMs, await time(bare));
    clientMs = Math.min(clientMs, await time(client));
  }
  await server.stop();
  const percent = (clientMs / bareMs - 1) * 100;
  const micros = (ms: number) => `${((ms / CALLS) * 1000).toFixed(0)} us`;
  console.log(
    `overhead: fetch ${micros(bareMs)}, check ${micros(clientMs)}, ${percent.toFixed(1)} %`,
  );
  assert.ok(percent < LIMIT_PERCENT, `${percent} %`);
});

async function time(call: () => Promise<Decision>): Promise<number> {
  const started = performance.now();
  for (let n = 0; n < CALLS; n += 1) assert.ok((await call()).allowed);
  return performance.now() - started;
}
