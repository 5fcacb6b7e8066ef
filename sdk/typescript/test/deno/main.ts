// Run by deno.test.ts: the client and the edge guard in Deno, with the permission to use the
// network of this machine alone.
import { Catraca } from "@catraca/client";
import { guarded } from "@catraca/client/edge";

const catraca = new Catraca({
  url: Deno.env.get("CATRACA_URL")!,
  key: Deno.env.get("CATRACA_KEY")!,
  deadlineMs: 5_000,
});

const address = (_: Request, info: Deno.ServeHandlerInfo) =>
  (info.remoteAddr as Deno.NetAddr).hostname;
const handler = guarded(catraca, { gate: "login", address }, () => new Response("in"));

const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, handler);
const url = `http://127.0.0.1:${server.addr.port}/login`;
const statuses: number[] = [];
for (let n = 0; n < 4; n += 1) {
  const response = await fetch(url);
  statuses.push(response.status);
  await response.body?.cancel();
}
await server.shutdown();

const lock = await catraca.withLock("deno", ({ fence }) => fence > 0);
const away = new Catraca({ url: "http://127.0.0.1:1", onFailure: "closed" });
const closed = await away.check("login", { ip: "198.51.100.7" });
const unset = new Catraca({ url: "http://127.0.0.1:1" });
const uncheckedHandler = guarded(unset, { gate: "login" }, () => new Response("in"));
const unchecked = await uncheckedHandler(new Request(url));
console.log(JSON.stringify({ statuses, lock, closed: closed.reason, unchecked: unchecked.status }));
