// Each guard in its framework, in front of the real server.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { getConnInfo } from "@hono/node-server/conninfo";
import { serve } from "@hono/node-server";
import { Catraca } from "@catraca/client";
import { guarded, guard as webGuard } from "@catraca/client/edge";
import { guard as expressGuard } from "@catraca/client/express";
import { guard as fastifyGuard } from "@catraca/client/fastify";
import { guard as honoGuard } from "@catraca/client/hono";
import { guardMiddleware } from "@catraca/client/next";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import { NextRequest, NextResponse } from "next/server.js";

import { closeServer, listen } from "./support/proxy.js";
import { REPOSITORY, startServer } from "./support/server.js";
import type { TestServer } from "./support/server.js";
import { waitUntil } from "./support/wait.js";

/** The problem of a request that was not checked, which the guards of all clients respond with. */
const UNCHECKED = JSON.parse(
  readFileSync(join(REPOSITORY, "sdk", "testdata", "unchecked.json"), "utf8"),
) as object;

/** No server listens there. */
const away = new Catraca({ url: "http://127.0.0.1:1" });

let server: TestServer;
let catraca: Catraca;

before(async () => {
  server = await startServer();
  catraca = new Catraca({ url: server.url, key: server.keys.check, deadlineMs: 5_000 });
});

after(() => server.stop());

/** Three logins pass, the fourth is denied and does not reach the handler. */
async function expectGuard(call: () => Promise<Response>, reached: () => number): Promise<void> {
  for (const remaining of [2, 1, 0]) {
    const response = await call();
    assert.equal(response.status, 200);
    assert.match(response.headers.get("ratelimit") ?? "", new RegExp(`"login";r=${remaining}`));
  }
  const denied = await call();
  assert.equal(denied.status, 429);
  assert.match(denied.headers.get("content-type") ?? "", /^application\/problem\+json/);
  assert.ok(Number(denied.headers.get("retry-after")) > 50);
  const body = (await denied.json()) as Record<string, unknown>;
  assert.deepEqual([body.reason, body.detail], ["over_limit", "Too many attempts."]);
  assert.equal(reached(), 3);
}

/** The units that are left of 100, after settles that run behind the response. */
async function untilCharged(ip: string, remaining: number): Promise<void> {
  const isCharged = async () => (await catraca.peek("failures", { ip })).remaining === remaining;
  await waitUntil(`${remaining} units are left`, isCharged);
}

// covers: 004-19
test("express: denies before the handler, and settles with the status", async () => {
  let reached = 0;
  const app = express();
  app.set("trust proxy", 1);
  app.post("/login", expressGuard(catraca, { gate: "login" }), (_, response) => {
    reached += 1;
    response.send("in");
  });
  app.post("/session", expressGuard(catraca, { gate: "failures" }), (_, response) => {
    response.status(401).send("no");
  });
  app.post("/typo", expressGuard(catraca, { gate: "logn" }), (_, response) => {
    response.send("unlimited");
  });
  app.get("/free", expressGuard(catraca, { gate: () => null }), (_, response) => {
    response.send("free");
  });
  const http = createServer(app);
  const url = await listen(http);
  const headers = { "X-Forwarded-For": "6.6.6.6, 198.51.100.30" };
  const post = (path: string) => fetch(url + path, { method: "POST", headers });
  await expectGuard(() => post("/login"), () => reached);
  assert.equal((await post("/session")).status, 401);
  await untilCharged("198.51.100.30", 50);
  assert.equal((await post("/typo")).status, 500, "a wrong gate never lets a request pass");
  assert.equal((await fetch(`${url}/free`)).status, 200);
  await closeServer(http);
});

const EXPOSED = "Retry-After, RateLimit, RateLimit-Policy";
const ORIGIN = "https://shop.example";
const PREFLIGHT = { method: "OPTIONS", headers: { "Access-Control-Request-Method": "POST" } };

/** Three logins pass, the fourth is denied, and a page of another origin can read all of them. */
async function expectCors(
  call: (init: RequestInit) => Promise<Response>,
  exposed: string,
): Promise<void> {
  for (let n = 0; n < 5; n += 1) {
    assert.equal((await call(PREFLIGHT)).status, 204, "a preflight is not counted");
  }
  for (let n = 0; n < 3; n += 1) {
    const response = await call({ method: "POST" });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("access-control-expose-headers"), exposed);
  }
  const denied = await call({ method: "POST" });
  assert.equal(denied.status, 429);
  assert.ok(denied.headers.has("retry-after"));
  assert.equal(denied.headers.get("access-control-allow-origin"), ORIGIN);
  assert.equal(denied.headers.get("access-control-expose-headers"), exposed);
}

test("express: a page of another origin can read the fields", async () => {
  const app = express();
  const cors = { "Access-Control-Allow-Origin": ORIGIN, Vary: "Origin" };
  const subject = () => ({ ip: "198.51.100.50" });
  app.use((_, response, next) => {
    response.setHeader("Access-Control-Expose-Headers", "X-Total");
    next();
  });
  app.use(expressGuard(catraca, { gate: "login", subject, cors: () => cors }));
  app.options("/login", (_, response) => void response.sendStatus(204));
  app.post("/login", (_, response) => void response.send("in"));
  const http = createServer(app);
  const url = await listen(http);
  await expectCors((init) => fetch(`${url}/login`, init), `X-Total, ${EXPOSED}`);
  await closeServer(http);
});

test("fastify: a page of another origin can read the fields", async () => {
  const app = Fastify();
  const cors = { "Access-Control-Allow-Origin": ORIGIN };
  const subject = () => ({ ip: "198.51.100.51" });
  const { route } = fastifyGuard(catraca, { gate: "login", subject, cors });
  app.options("/login", route, async (_, reply) => reply.code(204).send());
  app.post("/login", route, async () => "in");
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  await expectCors((init) => fetch(`${url}/login`, init), EXPOSED);
  await app.close();
});

test("hono: a preflight is not counted, and a page of another origin can read a denial", async () => {
  const app = new Hono();
  const cors = { "Access-Control-Allow-Origin": ORIGIN };
  const address = () => "198.51.100.52";
  app.use("/login", honoGuard(catraca, { gate: "login", address, cors }));
  app.options("/login", (c) => c.body(null, 204));
  app.post("/login", (c) => c.text("in"));
  for (let n = 0; n < 5; n += 1) {
    assert.equal((await app.request("/login", PREFLIGHT)).status, 204);
  }
  const post = { method: "POST" };
  for (let n = 0; n < 3; n += 1) assert.equal((await app.request("/login", post)).status, 200);
  const denied = await app.request("/login", post);
  assert.equal(denied.status, 429);
  assert.equal(denied.headers.get("access-control-allow-origin"), ORIGIN);
  assert.equal(denied.headers.get("access-control-expose-headers"), EXPOSED);
});

test("fastify: denies before the handler, and settles with the status", async () => {
  let reached = 0;
  const app = Fastify({ trustProxy: "127.0.0.1" });
  app.post("/login", fastifyGuard(catraca, { gate: "login" }).route, async () => {
    reached += 1;
    return "in";
  });
  const byUser = fastifyGuard(catraca, {
    gate: "failures",
    subject: (request: { ip: string; body?: unknown }) => ({
      ip: (request.body as { user: string }).user,
    }),
  });
  app.post("/session", byUser.routeWithBody, async (_, reply) => reply.code(401).send("no"));
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  const headers = { "X-Forwarded-For": "6.6.6.6, 198.51.100.31" };
  await expectGuard(
    () => fetch(`${url}/login`, { method: "POST", headers }),
    () => reached,
  );
  const json = { "Content-Type": "application/json" };
  const body = JSON.stringify({ user: "198.51.100.41" });
  const session = await fetch(`${url}/session`, { method: "POST", headers: json, body });
  assert.equal(session.status, 401);
  await untilCharged("198.51.100.41", 50);
  await app.close();
});

test("hono: denies before the handler, and settles with the status", async () => {
  let reached = 0;
  const app = new Hono();
  app.post("/login", honoGuard(catraca, { gate: "login" }), (c) => {
    reached += 1;
    return c.text("in");
  });
  const address = (c: Parameters<typeof getConnInfo>[0]) => getConnInfo(c).remote.address;
  app.post("/session", honoGuard(catraca, { gate: "failures", address }), (c) => {
    return c.text("no", 401);
  });
  const url = await new Promise<string>((resolve) => {
    const http = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) => {
      resolve(`http://127.0.0.1:${port}`);
    });
    after(() => http.close());
  });
  const headers = { "X-Forwarded-For": "6.6.6.6, 198.51.100.32" };
  await expectGuard(
    () => fetch(`${url}/login`, { method: "POST", headers }),
    () => reached,
  );
  assert.equal((await fetch(`${url}/session`, { method: "POST" })).status, 401);
  await untilCharged("127.0.0.1", 50);
});

test("hono: a settle is handed to waitUntil where the platform has it", async () => {
  const app = new Hono();
  const address = () => "198.51.100.53";
  app.get("/session", honoGuard(catraca, { gate: "failures", address }), (c) => c.text("no", 401));
  const work: Promise<unknown>[] = [];
  const context = { waitUntil: (settled: Promise<unknown>) => void work.push(settled), props: {} };
  const platform = { ...context, passThroughOnException: () => {} };
  assert.equal((await app.request("/session", {}, {}, platform)).status, 401);
  assert.equal(work.length, 1);
  await Promise.all(work);
  assert.equal((await catraca.peek("failures", { ip: "198.51.100.53" })).remaining, 50);
  assert.equal((await app.request("/session")).status, 401, "without a context, as on Node");
});

test("edge: denies before the handler, and settles with the status", async () => {
  let reached = 0;
  const work: Promise<unknown>[] = [];
  const login = guarded(catraca, { gate: "login" }, () => {
    reached += 1;
    return Response.redirect("https://shop.example/", 302);
  });
  const headers = { "X-Forwarded-For": "6.6.6.6, 198.51.100.33" };
  const request = new Request("https://shop.example/login", { method: "POST", headers });
  await expectGuard(
    async () => {
      const response = await login(request);
      // A redirect has headers that cannot be changed; the fields are there all the same.
      if (response.status !== 302) return response;
      return new Response("", { status: 200, headers: response.headers });
    },
    () => reached,
  );
  const waitUntil = (promise: Promise<unknown>) => void work.push(promise);
  const failing = guarded(catraca, { gate: "failures", waitUntil }, () => {
    throw new Error("a bug");
  });
  await assert.rejects(failing(request), /a bug/);
  const refuse = () => new Response("no", { status: 401 });
  const refusing = guarded(catraca, { gate: "failures", waitUntil }, refuse);
  assert.equal((await refusing(request)).status, 401);
  assert.equal(work.length, 2);
  await Promise.all(work);
  // A unit for the 500 of the bug, and 50 for the 401.
  assert.equal((await catraca.peek("failures", { ip: "198.51.100.33" })).remaining, 49);
});

test("edge: an address from the platform, a cost, a reference and an own body", async () => {
  const options = {
    gate: "login",
    address: (_: Request, info: { remote: string }) => info.remote,
    cost: 3,
    ref: () => "r-edge",
    denial: (_: unknown, status: number) => ({ oops: status }),
  } as const;
  const request = new Request("https://shop.example/login");
  const info = { remote: "198.51.100.34" };
  assert.equal(await webGuard(catraca, request, options, info), null);
  const denied = await webGuard(catraca, request, options, info);
  assert.deepEqual(await denied?.json(), { oops: 429 });
});

test("edge: closed on failure is a 503", async () => {
  const options = { gate: "login", onFailure: "closed" } as const;
  const response = await webGuard(away, new Request("https://shop.example/"), options);
  assert.equal(response?.status, 503);
  assert.equal(response?.headers.get("catraca-degraded"), "?1");
});

test("next: the middleware answers denials, and adds the fields to allowed responses", async () => {
  const middleware = guardMiddleware(catraca, { gate: "login", next: () => NextResponse.next() });
  const headers = { "X-Forwarded-For": "198.51.100.35" };
  const request = () => new NextRequest("https://shop.example/login", { headers });
  let reached = 0;
  await expectGuard(
    async () => {
      const response = await middleware(request());
      assert.ok(response);
      if (response.headers.get("x-middleware-next") === "1") reached += 1;
      return response;
    },
    () => reached,
  );
  const bare = guardMiddleware(catraca, { gate: () => null });
  assert.equal(await bare(request()), undefined);
});

/** A guard, and a handler behind it that counts, without a server that decides. */
const UNCHECKED_GUARDS: Record<string, (reached: () => void) => Promise<Response>> = {
  express: async (reached) => {
    const app = express();
    app.get("/", expressGuard(away, { gate: "login", denial: "conflict" }), reached);
    const http = createServer(app);
    const response = await fetch(await listen(http));
    const copy = new Response(await response.text(), response);
    await closeServer(http);
    return copy;
  },
  fastify: async (reached) => {
    const app = Fastify();
    app.get("/", fastifyGuard(away, { gate: "login" }).route, async () => reached());
    const { statusCode, headers, payload } = await app.inject("/");
    const fields = new Headers();
    for (const [name, value] of Object.entries(headers)) fields.set(name, String(value));
    await app.close();
    return new Response(payload, { status: statusCode, headers: fields });
  },
  hono: async (reached) => {
    const app = new Hono();
    app.get("/", honoGuard(away, { gate: "login" }), (c) => (reached(), c.text("in")));
    return app.request("/");
  },
  edge: async (reached) => {
    const options = { gate: "login", denial: "empty", cors: { Vary: "Origin" } } as const;
    const handler = guarded(away, options, () => (reached(), new Response("in")));
    const response = await handler(new Request("https://shop.example/"));
    assert.equal(response.headers.get("vary"), "Origin");
    return response;
  },
  next: async (reached) => {
    const next = () => (reached(), NextResponse.next());
    const middleware = guardMiddleware(away, { gate: "login", next });
    return (await middleware(new NextRequest("https://shop.example/"))) ?? new Response("passed");
  },
};

for (const [name, call] of Object.entries(UNCHECKED_GUARDS)) {
  test(`${name}: a request that cannot be checked gets a 503 and does not pass`, async () => {
    let reached = 0;
    const response = await call(() => (reached += 1));
    assert.deepEqual([response.status, reached], [503, 0]);
    assert.deepEqual(await response.json(), UNCHECKED);
    assert.equal(response.headers.get("retry-after"), "1");
    assert.equal(response.headers.get("cache-control"), "no-store");
    assert.match(response.headers.get("content-type") ?? "", /^application\/problem\+json/);
  });
}

// covers: 002-34
test("edge: with onFailure open, a request passes, and the response says degraded", async () => {
  const handler = guarded(away, { gate: "login", onFailure: "open" }, () => new Response("in"));
  const response = await handler(new Request("https://shop.example/"));
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("catraca-degraded"), "?1");
});
