// The real server on a loopback port, with a catalog and keys of its own; ended by its process id.
import { execFileSync, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const BINARY = process.env.CATRACA_BIN ?? "catraca";
const HERE = import.meta.dirname;
export const REPOSITORY = process.env.CATRACA_REPOSITORY ?? join(HERE, "../../../..");

export const CATALOG = `
[policy.login]
by      = ["ip"]
window  = "3 per 1m"
block   = "1m"
message = "Too many attempts."

[policy.search]
by     = ["tenant", "ip"]
bucket = { size = 1000000, refill = "1000000 per 1m" }

[policy.failures]
by     = ["ip"]
bucket = { size = 100, refill = "1 per 1m" }
cost   = { "401" = 50, default = 1 }

[policy.lookups]
by     = ["payer"]
bucket = { size = 10, refill = "1 per 1h" }
cost   = { "200" = 2, default = 0 }
credit = { payment = { amount = 2, on = ["200"] } }

[policy.uploads]
by       = ["ip"]
inflight = 1
`;

export interface TestServer {
  url: string;
  port: number;
  /** Keys by role. */
  keys: Record<Role, string>;
  /** Ends the process at once, as a crash does. */
  kill(): Promise<void>;
  /** Starts it again on the same port. */
  restart(): Promise<void>;
  /** Ends it and removes its files. */
  stop(): Promise<void>;
}

type Role = "read" | "check" | "admin";
const ROLES: Role[] = ["read", "check", "admin"];

/** `checkKey`: more lines for the key of the role `check`. */
export async function startServer(catalog = CATALOG, checkKey = ""): Promise<TestServer> {
  const folder = mkdtempSync(join(tmpdir(), "catraca-ts-"));
  const keys = {} as Record<Role, string>;
  let text = catalog;
  for (const role of ROLES) {
    const { key, table } = makeKey(role);
    keys[role] = key;
    text += `\n${table.trim()}\n${role === "check" ? checkKey : ""}`;
  }
  const file = join(folder, "catalog.toml");
  writeFileSync(file, text);
  const port = await freePort();
  let child = await launch(file, port).catch((error) => {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  });
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    keys,
    kill: () => end(child),
    restart: async () => {
      child = await launch(file, port);
    },
    stop: async () => {
      await end(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A catalog of presets/. */
export function preset(name: string): string {
  return readFileSync(join(REPOSITORY, "presets", name, "catalog.toml"), "utf8");
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function makeKey(role: Role): { key: string; table: string } {
  const printed = execFileSync(BINARY, ["keygen", "--role", role, "--name", role], {
    encoding: "utf8",
  });
  const key = printed.split("\n", 1)[0] ?? "";
  return { key, table: printed.slice(printed.indexOf("[[auth.key]]")) };
}

async function launch(file: string, port: number): Promise<ChildProcess> {
  const args = ["serve", "--listen", `127.0.0.1:${port}`, "--config", file];
  const child = spawn(BINARY, args, {
    stdio: ["ignore", "pipe", "pipe"],
    // Presets have a proxy with a fixed port; servers of tests run side by side.
    env: { PROXY_LISTEN: "127.0.0.1:0", ...process.env },
  });
  let log = "";
  child.stderr.on("data", (chunk) => (log += chunk));
  await new Promise<void>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`catraca serve ended with ${code}: ${log}`)));
    child.stdout.once("data", () => resolve());
  });
  // A test that fails before it stops its server must still end, and end the server.
  process.once("exit", () => child.kill("SIGKILL"));
  child.unref();
  for (const stream of [child.stdout, child.stderr]) (stream.resume() as Socket).unref();
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.ref();
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
}
