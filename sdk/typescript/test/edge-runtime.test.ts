// The built package in an Edge runtime: no `process`, no modules of Node, only the Web's API.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { EdgeVM } from "@edge-runtime/vm";
import { buildSync } from "esbuild";

import { ROOT } from "./support/install.js";
import { startServer } from "./support/server.js";
import type { TestServer } from "./support/server.js";

const PROGRAM = `
import { Catraca } from "./index.js";
import { guarded } from "./adapters/edge.js";

export async function run(url, key) {
  const catraca = new Catraca({ url, key, deadlineMs: 5_000 });
  const away = new Catraca({ url: "http://127.0.0.1:1" });
  const warnings = await catraca.verify(["login", "logn"]);
  const login = guarded(catraca, { gate: "login" }, () => new Response("in"));
  const request = new Request("https://shop.example/login", {
    method: "POST",
    headers: { "X-Forwarded-For": "198.51.100.1" },
  });
  const statuses = [];
  for (let n = 0; n < 4; n += 1) statuses.push((await login(request)).status);
  const lock = await catraca.withLock("edge", ({ fence }) => fence > 0);
  const error = await away.check("login", {}).catch(({ name }) => name);
  const handler = guarded(away, { gate: "login" }, () => new Response("in"));
  const { status: unchecked } = await handler(request);
  const codes = warnings.map(({ code }) => code);
  return JSON.stringify({ node: typeof process, codes, statuses, lock, error, unchecked });
}
`;

let server: TestServer;

before(async () => {
  server = await startServer();
});

after(() => server.stop());

// covers: B-73
test("an Edge runtime: checks, a guard, a lock, an outage", async () => {
  const { outputFiles } = buildSync({
    stdin: { contents: PROGRAM, resolveDir: join(ROOT, "dist", "esm") },
    bundle: true,
    format: "iife",
    globalName: "program",
    write: false,
  });
  const runtime = new EdgeVM();
  runtime.evaluate(outputFiles[0]?.text ?? "");
  const call = `program.run(${JSON.stringify(server.url)}, ${JSON.stringify(server.keys.check)})`;
  assert.deepEqual(JSON.parse(await runtime.evaluate<Promise<string>>(call)), {
    node: "undefined",
    codes: ["unknown-gate"],
    statuses: [200, 200, 200, 429],
    lock: true,
    error: "UnavailableError",
    unchecked: 503,
  });
});
