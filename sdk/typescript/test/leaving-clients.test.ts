// Clients that leave before their response: the check is settled, although Fastify may run no hook.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";

import { Catraca } from "@catraca/client";
import { guard as expressGuard } from "@catraca/client/express";
import { guard as fastifyGuard } from "@catraca/client/fastify";
import express from "express";
import Fastify from "fastify";

import { closeServer, listen } from "./support/proxy.js";
import { startServer } from "./support/server.js";
import type { TestServer } from "./support/server.js";
import { waitUntil } from "./support/wait.js";

const GATE = { gate: "uploads" } as const;
const SUBJECT = { ip: "127.0.0.1" };

let server: TestServer;
let catraca: Catraca;

before(async () => {
  server = await startServer();
  catraca = new Catraca({ url: server.url, key: server.keys.check, deadlineMs: 5_000 });
});

after(() => server.stop());

/** An application whose route is guarded, and calls `enter` and does not respond. */
interface App {
  url: string;
  close(): Promise<unknown>;
}

const APPS: Record<string, (client: Catraca, enter: () => void) => Promise<App>> = {
  express: async (client, enter) => {
    const app = express();
    app.use(express.json());
    app.all("/upload", expressGuard(client, GATE), enter);
    const http = createServer(app);
    return { url: await listen(http), close: () => closeServer(http) };
  },
  fastify: async (client, enter) => {
    const app = Fastify({ forceCloseConnections: true });
    const handler = () => new Promise<void>(enter);
    app.all("/upload", fastifyGuard(client, GATE).route, handler);
    return { url: await app.listen({ port: 0, host: "127.0.0.1" }), close: () => app.close() };
  },
};

const isFree = async () => (await catraca.peek("uploads", SUBJECT)).allowed;
const JSON_TYPE = { "Content-Type": "application/json" };
// Node says of a request whose body was read to its end that it was not aborted.
const POST: RequestInit = { method: "POST", headers: JSON_TYPE, body: "{}" };

for (const [name, start] of Object.entries(APPS)) {
  test(`${name}: a client that leaves returns its lease`, async () => {
    for (const init of [{}, POST]) {
      let enter = () => {};
      const entered = new Promise<void>((resolve) => (enter = resolve));
      const app = await start(catraca, () => enter());
      const controller = new AbortController();
      const call = fetch(`${app.url}/upload`, { ...init, signal: controller.signal });
      await entered;
      assert.equal(await isFree(), false);
      controller.abort();
      await assert.rejects(call);
      await waitUntil(`the lease is returned (${init.method ?? "GET"})`, isFree);
      await app.close();
    }
  });

  test(`${name}: a client that leaves while it is checked returns its lease`, async () => {
    const controller = new AbortController();
    const settles: unknown[] = [];
    let left = () => {};
    const gone = new Promise<void>((resolve) => (left = resolve));
    /** Passes the answer of the check on when the client has left. */
    const late = (async (input: string, init: RequestInit) => {
      const answer = await fetch(input, init);
      if (input.endsWith("/v1/settle")) settles.push(init.body);
      if (!input.endsWith("/v1/check")) return answer;
      controller.abort();
      await gone;
      return answer;
    }) as typeof fetch;
    const { url } = server;
    const client = new Catraca({ url, key: server.keys.check, deadlineMs: 60_000, fetch: late });
    const app = await start(client, () => {});
    const call = fetch(`${app.url}/upload`, { signal: controller.signal });
    await assert.rejects(call);
    // A connection that is accepted later shows that the server has seen the end of this one.
    await fetch(`${app.url}/`);
    left();
    await waitUntil("the check is settled", () => settles.length > 0);
    await waitUntil("the lease is returned", isFree);
    await app.close();
    assert.equal(settles.length, 1, "once");
  });
}
