// A real Redis, and in front of it the HTTP interface that @upstash/redis calls.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import type { IncomingMessage } from "node:http";

import { Redis } from "ioredis";

import { closeServer, listen } from "./proxy.js";
import { freePort } from "./server.js";

type Command = (string | number)[];

export interface TestRedis {
  client: Redis;
  /** The address of the HTTP interface. */
  url: string;
  stop(): Promise<void>;
}

export async function startRedis(): Promise<TestRedis> {
  const port = await freePort();
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--save", ""];
  const server = spawn("redis-server", args, { stdio: "ignore" });
  process.once("exit", () => server.kill("SIGKILL"));
  const client = new Redis({ port, host: "127.0.0.1", retryStrategy: () => 50 });
  // The first attempts may come before it listens.
  client.on("error", () => {});
  await client.ping();
  const http = createServer(async (request, response) => {
    const commands = JSON.parse(await readText(request)) as Command | Command[];
    const isPipeline = request.url === "/pipeline";
    const list = (isPipeline ? commands : [commands]) as Command[];
    const answers: object[] = [];
    for (const command of list) answers.push(await execute(client, command));
    const isError = !isPipeline && "error" in (answers[0] ?? {});
    response.writeHead(isError ? 400 : 200, { "Content-Type": "application/json" });
    response.end(JSON.stringify(isPipeline ? answers : answers[0]));
  });
  const stop = async () => {
    await closeServer(http);
    client.disconnect();
    const ended = new Promise((resolve) => server.once("exit", resolve));
    server.kill("SIGKILL");
    await ended;
  };
  return { client, url: await listen(http), stop };
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

/** Scripts for the cloud have a flag that Redis does not know; it changes no result. */
const CLOUD_FLAG = "#!lua flags=allow-key-locking";

async function execute(client: Redis, command: Command): Promise<object> {
  const [name = "", ...args] = command.map((part) => String(part).replace(CLOUD_FLAG, ""));
  try {
    return { result: encode(await client.call(name, ...args)) };
  } catch (error) {
    return { error: (error as Error).message };
  }
}

/** Texts are sent in base64, as the client asks for. */
function encode(value: unknown): unknown {
  if (typeof value === "string") return Buffer.from(value).toString("base64");
  return Array.isArray(value) ? value.map(encode) : value;
}
