// Chromium: the client in a page, and a denial that a page of another origin can read.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Catraca } from "@catraca/client";
import { RATE_LIMIT_CONFIGS, rateLimitMiddleware } from "@catraca/client/checkout";
import { guarded } from "@catraca/client/edge";
import { buildSync } from "esbuild";
import { chromium } from "playwright-core";
import type { Browser, Page } from "playwright-core";

import { closeServer, listen } from "./support/proxy.js";
import { preset, startServer } from "./support/server.js";
import type { TestServer } from "./support/server.js";

let server: TestServer;
let browser: Browser;
const open: Server[] = [];

before(async () => {
  server = await startServer(preset("checkout"));
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const args = ["--disable-background-networking", "--disable-dev-shm-usage", "--disable-gpu"];
  browser = await chromium.launch({ executablePath, args, chromiumSandbox: false });
});

after(async () => {
  await browser.close();
  for (const http of open) await closeServer(http);
  await server.stop();
});

/** A handler of edge functions behind Node's server, as a proxy would call it. */
async function serveHandler(handler: (request: Request) => Promise<Response>): Promise<string> {
  const http = createServer((incoming, outgoing) => {
    void handler(requestOf(incoming)).then((response) => send(response, outgoing));
  });
  open.push(http);
  return listen(http);
}

function requestOf(incoming: IncomingMessage): Request {
  const headers = new Headers(incoming.headers as Record<string, string>);
  headers.set("X-Forwarded-For", "203.0.113.50");
  const { method = "GET", url = "/" } = incoming;
  return new Request(`http://127.0.0.1${url}`, { method, headers });
}

async function send(response: Response, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.end(await response.text());
}

async function openPage(body = ""): Promise<Page> {
  const site = createServer((_, response) => {
    response.setHeader("Content-Type", "text/html");
    response.end(`<!doctype html><title>shop</title>${body}`);
  });
  open.push(site);
  const page = await browser.newPage();
  await page.goto(await listen(site));
  return page;
}

const CORS = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Allow-Headers": "content-type",
  "Access-Control-Allow-Methods": "POST",
};

/** Calls from the page until a response is not 200, and what the page can read of it. */
function callUntilDenied(page: Page, url: string) {
  return page.evaluate(async (address) => {
    const headers = { "Content-Type": "application/json" };
    for (let calls = 1; ; calls += 1) {
      const response = await fetch(address, { method: "POST", headers, body: "{}" });
      if (response.status === 200) continue;
      const body = (await response.json()) as Record<string, unknown>;
      const retryAfter = response.headers.get("retry-after");
      const rateLimit = response.headers.get("ratelimit");
      return { calls, status: response.status, retryAfter, rateLimit, body };
    }
  }, url);
}

// covers: 003-37
test("a page of another origin reads the denial, its wait and its body", async () => {
  const catraca = new Catraca({ url: server.url, key: server.keys.check, deadlineMs: 5_000 });
  const url = await serveHandler(async (request) => {
    if (request.method === "OPTIONS") return new Response(null, { headers: CORS });
    const config = RATE_LIMIT_CONFIGS.GDPR_FORGET;
    const denied = await rateLimitMiddleware(catraca, request, config, CORS);
    return denied ?? new Response("{}", { headers: CORS });
  });
  const seen = await callUntilDenied(await openPage(), url);
  assert.deepEqual([seen.calls, seen.status], [6, 429]);
  assert.ok(Number(seen.retryAfter) > 7_000);
  assert.equal(seen.body.retryAfter, Number(seen.retryAfter));
});

test("preflights are not counted, and the guard's denial can be read too", async () => {
  const catraca = new Catraca({ url: server.url, key: server.keys.check, deadlineMs: 5_000 });
  const options = { gate: "gdpr_request", cors: CORS };
  const handler = guarded(catraca, options, () => new Response("{}", { headers: CORS }));
  const seen = await callUntilDenied(await openPage(), await serveHandler(handler));
  assert.deepEqual([seen.calls, seen.status], [6, 429]);
  assert.match(seen.rateLimit ?? "", /"gdpr_request";r=0/);
  assert.equal(seen.body.reason, "over_limit");
});

test("the client runs in a page, behind a path of the page's own server", async () => {
  const bundle = buildSync({
    entryPoints: [join(import.meta.dirname, "..", "dist", "esm", "index.js")],
    bundle: true,
    format: "iife",
    globalName: "client",
    write: false,
  });
  const script = bundle.outputFiles[0]?.text ?? "";
  // The site's server adds the key, which a page must not have.
  const headers = { Authorization: `Bearer ${server.keys.check}` };
  const site = createServer((incoming, outgoing) => {
    if (!incoming.url?.startsWith("/limits/")) {
      outgoing.setHeader("Content-Type", "text/html");
      outgoing.end(`<!doctype html><title>shop</title><script>${script}</script>`);
      return;
    }
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const json = { ...headers, "Content-Type": "application/json" };
      const init = { method: "POST", headers: json, body: Buffer.concat(chunks) };
      const path = incoming.url?.slice("/limits".length);
      void fetch(server.url + path, init).then((response) => send(response, outgoing));
    });
  });
  open.push(site);
  const page = await browser.newPage();
  const url = await listen(site);
  await page.goto(url);
  const result = await page.evaluate(async (base) => {
    const { Catraca } = (globalThis as unknown as { client: typeof import("@catraca/client") })
      .client;
    const catraca = new Catraca({ url: `${base}/limits`, deadlineMs: 5_000 });
    const decision = await catraca.check("create_order", { ip: "203.0.113.51" });
    const fence = await catraca.withLock("page", (held) => held.fence);
    const away = new Catraca({ url: "http://127.0.0.1:1", onFailure: "closed" });
    const closed = await away.check("create_order", { ip: "203.0.113.51" });
    return { reason: decision.reason, locked: fence > 0, closed: closed.reason };
  }, url);
  assert.deepEqual(result, { reason: "ok", locked: true, closed: "unavailable" });
});
