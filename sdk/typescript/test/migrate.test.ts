// The code of docs/guide/migrate.md, run: before and after give the same verdicts.
// express-rate-limit counts in its process, rate-limiter-flexible in a real Redis, and
// @upstash/ratelimit in that Redis, through a small HTTP server in place of its cloud.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import express from "express";
import type { Express, Request, Response } from "express";

import { writeProgram } from "./support/compile.js";
import { codeBlocks } from "./support/documents.js";
import { closeServer, listen } from "./support/proxy.js";
import { startRedis } from "./support/redis.js";
import type { TestRedis } from "./support/redis.js";
import { startServer } from "./support/server.js";
import type { TestServer } from "./support/server.js";

const GUIDE = "docs/guide/migrate.md";
const CLIENT = 'import { Catraca } from "@catraca/client";\n';

type Version = "before" | "after";
type Block = (...args: unknown[]) => Promise<unknown>;

let server: TestServer;
let redis: TestRedis;

before(async () => {
  const catalog = codeBlocks(GUIDE).find(({ tag }) => tag === "toml,file=limits.toml");
  server = await startServer(catalog?.text);
  redis = await startRedis();
  process.env.CATRACA_KEY = server.keys.check;
  process.env.UPSTASH_REDIS_REST_URL = redis.url;
  process.env.UPSTASH_REDIS_REST_TOKEN = "token";
});

after(async () => {
  await redis.stop();
  await server.stop();
});

/** A block of the guide as a function of the names that it takes for granted. */
async function load(
  heading: string,
  version: Version,
  parameters: string[],
  result = "undefined",
): Promise<Block> {
  const isWanted = (text: string) => text.startsWith(`// ${version}\n`);
  const block = codeBlocks(GUIDE).find((one) => one.heading === heading && isWanted(one.text));
  assert.ok(block, `${heading}: no block "${version}"`);
  const lines = block.text.replace("http://127.0.0.1:7878", server.url).split("\n");
  const imports = lines.filter((line) => line.startsWith("import "));
  const rest = lines.filter((line) => !line.startsWith("import "));
  const makesClient = rest.some((line) => line.includes("new Catraca("));
  const needsClient = version === "after" && !makesClient;
  const client = needsClient
    ? `${CLIENT}const catraca = new Catraca({ url: "${server.url}", deadlineMs: 5_000 });\n`
    : "";
  const text =
    `${imports.join("\n")}\n${client}export default async (${parameters.join(", ")}) => {\n` +
    `${rest.join("\n")}\nreturn ${result};\n};\n`;
  const name = `migrate/${heading.replace(/\W+/g, "-")}-${version}`;
  const folder = writeProgram(name, { "block.js": text });
  return ((await import(pathToFileURL(`${folder}/block.js`).href)) as { default: Block }).default;
}

/** The status and the `Retry-After` of each of so many requests to an application. */
async function statuses(app: Express, path: string, count: number): Promise<string[]> {
  const { createServer } = await import("node:http");
  const http = createServer(app);
  const url = await listen(http);
  const seen: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const response = await fetch(url + path);
    await response.text();
    const wait = response.headers.get("retry-after");
    seen.push(wait === null ? String(response.status) : `${response.status} after ${wait}`);
  }
  await closeServer(http);
  return seen;
}

const repeat = (verdict: string, count: number) => Array<string>(count).fill(verdict);

test("express-rate-limit: 100 requests pass, and the next are denied", async () => {
  const run = async (version: Version) => {
    const app = express();
    await (await load("express-rate-limit", version, ["app"]))(app);
    app.get("/api", (_, response) => void response.send("in"));
    return (await statuses(app, "/api", 103)).map((verdict) => verdict.slice(0, 3));
  };
  const old = await run("before");
  assert.deepEqual(old, [...repeat("200", 100), ...repeat("429", 3)]);
  assert.deepEqual(await run("after"), old);
});

test("rate-limiter-flexible: five pass, and the sixth starts a block of 15 minutes", async () => {
  const names = ["request", "response", "storeClient"];
  const run = async (version: Version) => {
    const block = await load("rate-limiter-flexible", version, names);
    const app = express();
    app.get("/login", async (request: Request, response: Response) => {
      await block(request, response, redis.client);
      if (!response.headersSent) response.send("in");
    });
    return statuses(app, "/login", 7);
  };
  const old = await run("before");
  assert.deepEqual(old, [...repeat("200", 5), ...repeat("429 after 900", 2)]);
  assert.deepEqual(await run("after"), old);
});

test("@upstash/ratelimit: ten in ten seconds pass, and the next are denied", async (t) => {
  // Its windows start at the clock's ten seconds: the test must not cross the end of one.
  const now = Math.floor(Date.now() / 10_000) * 10_000 + 1_000;
  const run = async (version: Version, result: string) => {
    const block = await load("@upstash/ratelimit", version, ["user"], result);
    const verdicts: unknown[] = [];
    for (let n = 0; n < 12; n += 1) verdicts.push(await block("ana"));
    return verdicts;
  };
  t.mock.timers.enable({ apis: ["Date"], now });
  const old = await run("before", "success");
  t.mock.timers.reset();
  assert.deepEqual(old, [...Array<boolean>(10).fill(true), false, false]);
  assert.deepEqual(await run("after", "allowed"), old);
});
