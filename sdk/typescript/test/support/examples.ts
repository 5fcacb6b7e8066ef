// Starts the programs of examples/: copied beside this build, with the packages installed here.
import { spawn } from "node:child_process";
import type { ChildProcess, StdioOptions } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after } from "node:test";

import { ROOT, installPackage } from "./install.js";
import { closeServer, listen } from "./proxy.js";
import { REPOSITORY } from "./server.js";
import type { TestServer } from "./server.js";
import { waitUntil } from "./wait.js";

const EXAMPLES = join(import.meta.dirname, "..", "examples");
export const MODULES = join(ROOT, "node_modules");
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
export function copyExample(name: string): string {
  const folder = join(EXAMPLES, name);
  rmSync(folder, { recursive: true, force: true });
  cpSync(join(REPOSITORY, "examples", name), folder, { recursive: true });
  installPackage(EXAMPLES);
  return folder;
}

export function environment(
  server: Pick<TestServer, "url" | "keys">,
  port: number,
): NodeJS.ProcessEnv {
  const { url, keys } = server;
  const catraca = { CATRACA_URL: url, CATRACA_KEY: keys.check, PORT: String(port) };
  const quiet = { NEXT_TELEMETRY_DISABLED: "1", DENO_NO_UPDATE_CHECK: "1" };
  return { ...process.env, ...catraca, ...quiet, PACKAGES_ROOT: ROOT, NODE_ENV: "production" };
}

/** Starts a program and waits until its port answers. */
export async function start(
  program: string,
  args: string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<{ url: string; stop: () => Promise<void> }> {
  const stdio: StdioOptions = ["ignore", "ignore", "inherit"];
  const child = spawn(program, args, { cwd, env, stdio, detached: true });
  STARTED.push(child);
  const url = `http://127.0.0.1:${env.PORT}`;
  const answers = async () => {
    if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}`);
    return fetch(url).then(
      async (response) => (await response.text(), true),
      () => false,
    );
  };
  await waitUntil(`${program} answers at ${url}`, answers);
  const stop = async () => {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    signalGroup(child, "SIGTERM");
    await ended;
  };
  return { url, stop };
}

/** The status and the body of an answer; a text is sent as it is, or the connection is closed. */
export type ApiAnswer = { status?: number; body: object | string | null } | "hang up";

/** An API of another company, which answers each path as the function says. */
export async function startApi(answers: (path: string) => ApiAnswer) {
  const api = createServer((request, response) => {
    const answer = answers(request.url ?? "");
    request.resume();
    if (answer === "hang up") return request.socket.destroy();
    const { status = 200, body } = answer;
    response.writeHead(status, { "Content-Type": "application/json" });
    return response.end(typeof body === "string" ? body : JSON.stringify(body));
  });
  return { url: await listen(api), close: () => closeServer(api) };
}
