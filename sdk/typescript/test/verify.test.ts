// Misconfiguration is named at the start.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";

import { Catraca } from "@catraca/client";
import type { Warning } from "@catraca/client";

import { closeServer, listen } from "./support/proxy.js";
import { CATALOG, freePort, startServer } from "./support/server.js";
import type { TestServer } from "./support/server.js";

let server: TestServer;

before(async () => {
  server = await startServer();
});

after(() => server.stop());

function client(options: { url?: string; key?: string } = {}) {
  const warnings: Warning[] = [];
  const catraca = new Catraca({
    url: server.url,
    key: server.keys.check,
    deadlineMs: 5_000,
    onWarning: (warning) => warnings.push(warning),
    ...options,
  });
  return { catraca, warnings };
}

async function codes(catraca: Catraca, gates: string[] = []): Promise<string[]> {
  return (await catraca.verify(gates)).map((warning) => warning.code);
}

test("a correct configuration has no warnings", async () => {
  assert.deepEqual(await codes(client().catraca, ["login", "search"]), []);
});

test("a misspelt gate is named, with the policy that decides in its place", async () => {
  const { catraca, warnings } = client();
  assert.deepEqual(await codes(catraca, ["login", "logn"]), ["unknown-gate"]);
  assert.match(warnings[0]?.detail ?? "", /logn/);
  const withDefault = await startServer(`default = "login"\n${CATALOG}`);
  const { url, keys } = withDefault;
  const unlisted = client({ url, key: keys.check });
  assert.deepEqual(await codes(unlisted.catraca, ["logn"]), ["unknown-gate"]);
  assert.match(unlisted.warnings[0]?.detail ?? "", /the policy login decides/);
  await withDefault.stop();
});

test("a key that is bound to a namespace finds a misspelt gate too", async () => {
  const bound = await startServer(CATALOG, 'namespace = "shop"');
  const { catraca } = client({ url: bound.url, key: bound.keys.check });
  assert.deepEqual(await codes(catraca, ["login", "logn"]), ["unknown-gate"]);
  await bound.stop();
  const everyone = `default = "all"\n[policy.all]\nwindow = "100 per 1m"\nby = []\n`;
  const withDefault = await startServer(everyone, 'namespace = "shop"');
  const { url, keys } = withDefault;
  const unlisted = client({ url, key: keys.check });
  assert.deepEqual(await codes(unlisted.catraca, ["all", "logn"]), ["unknown-gate"]);
  assert.match(unlisted.warnings[0]?.detail ?? "", /the policy all decides/);
  await withDefault.stop();
});

test("a key of another role, a wrong key and a closed port are named", async () => {
  assert.deepEqual(await codes(client({ key: server.keys.read }).catraca), ["wrong-role"]);
  assert.deepEqual(await codes(client({ key: server.keys.admin }).catraca), ["admin-key"]);
  assert.deepEqual(await codes(client({ key: "wrong" }).catraca), ["key-refused"]);
  const url = `http://127.0.0.1:${await freePort()}`;
  assert.deepEqual(await codes(client({ url }).catraca), ["unavailable"]);
});

test("a clock that is more than 30 seconds off is named", async () => {
  let lateMs = 60_000;
  const late = createServer((_, response) => {
    response.setHeader("Date", new Date(Date.now() - lateMs).toUTCString());
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ role: "check", operator: "a" }));
  });
  const { catraca, warnings } = client({ url: await listen(late) });
  assert.deepEqual(await codes(catraca), ["clock-difference"]);
  assert.match(warnings[0]?.detail ?? "", / 6\d s$/);
  lateMs = 20_000;
  assert.deepEqual(await codes(catraca), []);
  await closeServer(late);
});

test("one address for all clients is named once, and by verify", async () => {
  const { catraca, warnings } = client();
  const check = (ip: string) => catraca.check("search", { ip, tenant: "t1" });
  for (let n = 0; n < 99; n += 1) await check("203.0.113.1");
  assert.equal(warnings.length, 0);
  for (let n = 0; n < 51; n += 1) await check("203.0.113.1");
  assert.deepEqual(
    warnings.map((warning) => warning.code),
    ["same-address"],
  );
  assert.deepEqual(await codes(catraca), ["same-address"]);
  await check("203.0.113.2");
  assert.deepEqual(await codes(catraca), []);
  const varied = client();
  for (let n = 0; n < 150; n += 1) {
    await varied.catraca.check("search", { ip: `203.0.113.${n % 2}`, tenant: "t1" });
  }
  assert.deepEqual(varied.warnings, []);
});
