// The examples really run: copied beside this build, with the packages that are installed here.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import type { ChildProcess, StdioOptions } from "node:child_process";
import { cpSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";

import { Catraca } from "@catraca/client";
import { addToBlocklist } from "@catraca/client/checkout";

import { ROOT, installPackage } from "./support/install.js";
import { REPOSITORY, freePort, preset, startServer } from "./support/server.js";
import type { TestServer } from "./support/server.js";

const EXAMPLES = join(import.meta.dirname, "examples");
const MODULES = join(ROOT, "node_modules");
const STARTED: ChildProcess[] = [];

after(() => STARTED.forEach((child) => signalGroup(child, "SIGKILL")));

/** The whole process group: npm's `deno` is a program that starts another one. */
function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    process.kill(-(child.pid ?? NaN), signal);
  } catch (error) {
    // ESRCH: it has ended.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** A copy of an example, with the package beside it as npm would install it. */
function copyExample(name: string): string {
  const folder = join(EXAMPLES, name);
  rmSync(folder, { recursive: true, force: true });
  cpSync(join(REPOSITORY, "examples", name), folder, { recursive: true });
  installPackage(EXAMPLES);
  return folder;
}

function environment(server: TestServer, port: number): NodeJS.ProcessEnv {
  const { url, keys } = server;
  const catraca = { CATRACA_URL: url, CATRACA_KEY: keys.check, PORT: String(port) };
  const quiet = { NEXT_TELEMETRY_DISABLED: "1", DENO_NO_UPDATE_CHECK: "1" };
  return { ...process.env, ...catraca, ...quiet, PACKAGES_ROOT: ROOT, NODE_ENV: "production" };
}

/** Starts a program and waits until its port answers. */
async function start(
  program: string,
  args: string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<{ url: string; stop: () => Promise<void> }> {
  const stdio: StdioOptions = ["ignore", "ignore", "inherit"];
  const child = spawn(program, args, { cwd, env, stdio, detached: true });
  STARTED.push(child);
  const url = `http://127.0.0.1:${env.PORT}`;
  const answers = () => fetch(url).then((response) => response.text());
  while (await answers().then(() => false, () => true)) {
    if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const stop = async () => {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    signalGroup(child, "SIGTERM");
    await ended;
  };
  return { url, stop };
}

/** The lines that an application needs because of Catraca. */
function countGlue(name: string): number {
  const folder = join(REPOSITORY, "examples", name);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const sources = files.filter((file) => /\.(js|ts|tsx)$/.test(file) && !/node_modules/.test(file));
  let lines = 0;
  for (const file of sources) {
    let inside = false;
    for (const line of readFileSync(join(folder, file), "utf8").split("\n")) {
      const text = line.trim();
      if (/^\/\/ glue: (begin|end)$/.test(text)) inside = text.endsWith("begin");
      else if (text === "" || text.startsWith("//") || text.startsWith("/**")) continue;
      else if (inside || /\bcatraca\b|RATE_LIMIT_CONFIGS/.test(text)) lines += 1;
    }
  }
  return lines;
}

test("express: wrong passwords count three times, and the sixth unit is denied", async () => {
  const folder = copyExample("express");
  const server = await startServer(readFileSync(join(folder, "catalog.toml"), "utf8"));
  const env = environment(server, await freePort());
  const { url, stop } = await start(process.execPath, ["server.js"], folder, env);
  const login = (password: string) =>
    fetch(`${url}/login`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Forwarded-For": "203.0.113.70" },
      body: JSON.stringify({ password }),
    });
  const catraca = new Catraca({ url: server.url, key: server.keys.check, deadlineMs: 5_000 });
  assert.equal((await login("wrong")).status, 401);
  const left = () => catraca.peek("login", { ip: "203.0.113.70" });
  while ((await left()).remaining !== 2) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal((await login("correct")).status, 200);
  assert.equal((await login("correct")).status, 200);
  const denied = await login("correct");
  assert.equal(denied.status, 429);
  assert.ok(Number(denied.headers.get("retry-after")) >= 1);
  await stop();
  await server.stop();
  console.log(`glue of examples/express: ${countGlue("express")} lines`);
});

// covers: 003-42
test("deno: four edge functions of a checkout", async () => {
  const folder = copyExample("deno");
  installPackage(folder);
  const server = await startServer(preset("checkout"));
  const env = environment(server, await freePort());
  const deno = join(MODULES, ".bin", "deno");
  const flags = ["--no-lock", "--no-remote", "--check", "--allow-net=127.0.0.1", "--allow-env"];
  const { url, stop } = await start(deno, ["run", ...flags, "main.ts"], folder, env);
  const call = (path: string, ip: string) =>
    fetch(url + path, { method: "POST", headers: { "X-Forwarded-For": ip } });
  const statuses = async (path: string, count: number) => {
    const seen: number[] = [];
    for (let n = 0; n < count; n += 1) seen.push((await call(path, "203.0.113.71")).status);
    return seen;
  };
  const allowed = (count: number) => Array<number>(count).fill(200);
  assert.deepEqual(await statuses("/gdpr-forget", 6), [...allowed(5), 429]);
  assert.deepEqual(await statuses("/buyer-login", 11), [...allowed(10), 429]);
  assert.deepEqual(await statuses("/mercadopago-create-payment", 61), [...allowed(60), 429]);
  assert.deepEqual(await statuses("/stripe-create-payment", 61), [...allowed(60), 429]);

  const login = await call("/buyer-login", "203.0.113.71");
  const body = (await login.json()) as { error: string; retryAfter: number };
  assert.equal(body.error, "Rate limit exceeded");
  assert.equal(String(body.retryAfter), login.headers.get("retry-after"));
  assert.equal(login.headers.get("access-control-allow-origin"), "https://shop.example");

  const admin = new Catraca({ url: server.url, key: server.keys.admin, deadlineMs: 5_000 });
  await addToBlocklist(admin, "203.0.113.72");
  assert.equal((await call("/gdpr-forget", "203.0.113.72")).status, 403);
  assert.equal((await call("/stripe-create-payment", "203.0.113.72")).status, 200);
  await stop();
  await server.stop();
  console.log(`glue of examples/deno: ${countGlue("deno")} lines`);
});

// covers: 004-94
test("nextjs: limits before every route, and bookings that cannot overlap", async () => {
  const folder = copyExample("nextjs");
  const server = await startServer(preset("booking"));
  const env = environment(server, await freePort());
  const next = join(MODULES, "next", "dist", "bin", "next");
  execFileSync(process.execPath, [next, "build"], { cwd: folder, env, stdio: "inherit" });
  const args = [next, "start", "--hostname", "127.0.0.1", "--port", String(env.PORT)];
  const { url, stop } = await start(process.execPath, args, folder, env);
  const headers = (ip: string) => ({ "X-Forwarded-For": ip, "X-Tenant-Id": "t1", "X-Slug": "ana" });

  const services = () => fetch(`${url}/api/services`, { headers: headers("203.0.113.73") });
  const first = await services();
  assert.equal(first.status, 200);
  assert.match(first.headers.get("ratelimit") ?? "", /"public:60s";r=59/);
  const burst = await Promise.all(Array.from({ length: 100 }, services));
  const denied = burst.find((response) => response.status === 429);
  assert.ok(denied, "more than 60 a minute are denied");
  const body = (await denied.json()) as Record<string, unknown>;
  assert.deepEqual([body.error, body.conflict], ["Rate limit exceeded", true]);

  const book = async (start_at: string, fail = false) => {
    const booking = JSON.stringify({ employee: "ana", start_at, duration: 30, fail });
    const init = { method: "POST", headers: headers("203.0.113.74"), body: booking };
    return (await fetch(`${url}/api/appointments`, init)).status;
  };
  const ten = "2030-01-07T10:00:00Z";
  assert.equal(await book(ten, true), 500, "a failed booking");
  const statuses = await Promise.all([book(ten), book(ten)]);
  assert.deepEqual(statuses.sort(), [201, 409], "its time is free again, for one of two");
  assert.equal(await book("2030-01-07T10:15:00Z"), 409);
  assert.equal(await book("2030-01-07T10:30:00Z"), 201);
  await stop();
  await server.stop();
  console.log(`glue of examples/nextjs: ${countGlue("nextjs")} lines`);
});
