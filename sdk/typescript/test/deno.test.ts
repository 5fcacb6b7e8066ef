// The client in Deno.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

import { ROOT, installPackage } from "./support/install.js";
import { startServer } from "./support/server.js";

const FOLDER = join(import.meta.dirname, "deno");

// covers: B-73
test("Deno: types, checks, a guard, a lock and the failure mode", async () => {
  cpSync(join(ROOT, "test", "deno"), FOLDER, { recursive: true });
  installPackage(FOLDER);
  const server = await startServer();
  const deno = join(ROOT, "node_modules", ".bin", "deno");
  const env = { ...process.env, CATRACA_URL: server.url, CATRACA_KEY: server.keys.check };
  const options = { cwd: FOLDER, env: { ...env, DENO_NO_UPDATE_CHECK: "1" } };
  const flags = ["--no-lock", "--no-remote"];
  const permissions = ["--allow-net=127.0.0.1", "--allow-env=CATRACA_URL,CATRACA_KEY"];
  const args = ["run", "--check", ...flags, ...permissions, "main.ts"];
  const { stdout } = await promisify(execFile)(deno, args, options);
  await server.stop();
  const statuses = [200, 200, 200, 429];
  const expected = { statuses, lock: true, closed: "unavailable", unchecked: 503 };
  assert.deepEqual(JSON.parse(stdout), expected);
});
