// Run by runtimes.test.ts, in Node 18 and in Bun: the client, a guard behind the runtime's own HTTP
// server, a lock, and an outage.
import { createServer } from "node:http";
import { createRequire } from "node:module";

import { Catraca } from "@catraca/client";
import { guarded } from "@catraca/client/edge";
import { guard } from "@catraca/client/express";

const { CATRACA_URL: url, CATRACA_KEY: key } = process.env;
const catraca = new Catraca({ url, key, deadlineMs: 5_000 });
const away = new Catraca({ url: "http://127.0.0.1:1" });

/** Serves `in` behind the gate `login` on a free port, with the server of Bun or of Node. */
async function serve() {
  if (globalThis.Bun) {
    const address = () => "198.51.100.1";
    const fetch = guarded(catraca, { gate: "login", address }, () => new Response("in"));
    const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
    return { port: server.port, stop: () => server.stop(true) };
  }
  const middleware = guard(catraca, { gate: "login", subject: () => ({ ip: "198.51.100.1" }) });
  const server = createServer((request, response) => {
    response.locals = {};
    void middleware(request, response, (error) => response.end(error ? "error" : "in"));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = () => (server.closeAllConnections(), server.close());
  return { port: server.address().port, stop };
}

const { port, stop } = await serve();
const statuses = [];
for (let n = 0; n < 4; n += 1) {
  const response = await fetch(`http://127.0.0.1:${port}/`);
  await response.text();
  statuses.push(response.status);
}
await stop();

const lock = await catraca.withLock("runtime", ({ fence }) => fence > 0);
// The id of an acquire makes it repeatable, also where there is no global `crypto` (Node 18).
let answers = 0;
const losing = async (...call) => {
  const answer = await fetch(...call);
  answers += 1;
  if (answers === 1) throw new TypeError("the answer was lost");
  return answer;
};
const repeating = new Catraca({ url, key, deadlineMs: 5_000, fetch: losing });
const { granted: repeated } = await repeating.acquireLock("repeated");
const error = await away.check("login", { ip: "198.51.100.1" }).catch(({ name }) => name);
const handler = guarded(away, { gate: "login" }, () => new Response("in"));
const { status: unchecked } = await handler(new Request("http://127.0.0.1/"));
const required = typeof createRequire(import.meta.url)("@catraca/client").Catraca;
console.log(JSON.stringify({ statuses, lock, repeated, error, unchecked, required }));
