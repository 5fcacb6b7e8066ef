// The examples really run: copied beside this build, with the packages that are installed here.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Catraca } from "@catraca/client";
import { addToBlocklist } from "@catraca/client/checkout";

import { MODULES, copyExample, environment, start, startApi } from "./support/examples.js";
import type { ApiAnswer } from "./support/examples.js";
import { installPackage } from "./support/install.js";
import { startProxy } from "./support/proxy.js";
import { freePort, preset, startServer } from "./support/server.js";
import { waitUntil } from "./support/wait.js";

test("express: wrong passwords count three times, and the sixth unit is denied", async () => {
  const folder = copyExample("express");
  const server = await startServer(readFileSync(join(folder, "catalog.toml"), "utf8"));
  const env = environment(server, await freePort());
  const { url, stop } = await start(process.execPath, ["server.js"], folder, env);
  const login = (password: string) =>
    fetch(`${url}/login`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Forwarded-For": "203.0.113.70" },
      body: JSON.stringify({ password }),
    });
  const catraca = new Catraca({ url: server.url, key: server.keys.check, deadlineMs: 5_000 });
  assert.equal((await login("wrong")).status, 401);
  const left = () => catraca.peek("login", { ip: "203.0.113.70" });
  await waitUntil("two units are left", async () => (await left()).remaining === 2);
  assert.equal((await login("correct")).status, 200);
  assert.equal((await login("correct")).status, 200);
  const denied = await login("correct");
  assert.equal(denied.status, 429);
  assert.ok(Number(denied.headers.get("retry-after")) >= 1);
  await stop();
  await server.stop();
});

/** A shop whose payment API answers as `answer` says. */
async function startShop() {
  const folder = copyExample("express");
  const server = await startServer(preset("soft-ban"));
  const shop = { answer: { body: {} } as ApiAnswer };
  const api = await startApi(() => shop.answer);
  const env = { ...environment(server, await freePort()), PAYMENT_API: api.url };
  const { url, stop } = await start(process.execPath, ["payments.js"], folder, env);
  const submit = async (session: string, customer: string) => {
    const headers = { "X-Session-Id": session, "X-Customer-No": customer };
    const init = { method: "POST", headers };
    const response = await fetch(`${url}/CheckoutServices-SubmitPayment`, init);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const close = async () => {
    await stop();
    await api.close();
    await server.stop();
  };
  return Object.assign(shop, { submit, close });
}

const SUCCESS = { status: 200, body: { success: true } };

// covers: 000-43, 000-44, 000-45
test("express, soft-ban: a reject_id of 5 bans the customer and the session", async () => {
  const shop = await startShop();
  const { submit } = shop;
  for (const body of [{}, { reject_id: 0 }, { reject_id: null }]) {
    shop.answer = { body };
    assert.deepEqual(await submit("s1", "c1"), SUCCESS, JSON.stringify(body));
  }
  for (const body of [{ reject_id: "5" }, { reject_id: 4 }]) {
    shop.answer = { body };
    const { status, body: shown } = await submit("s1", "c1");
    assert.deepEqual([status, shown.success], [400, false], "refused, and no ban");
  }
  shop.answer = { status: 422, body: { reject_id: 5 } };
  const rejected = await submit("s1", "c1");
  assert.equal(rejected.status, 400);
  const wait = rejected.body.retryAfter as number;
  assert.ok(wait > 540 && wait <= 600, `${wait}`);
  assert.deepEqual(rejected.body, {
    success: false,
    error: true,
    errorMessage: "O pagamento foi recusado. Para tentar de novo, aguarde 10 minutos.",
    retryAfter: wait,
  });
  const banned = await submit("s1", "c1");
  assert.equal(banned.status, 429);
  assert.ok(Number(banned.body.retryAfter) > 540);
  assert.match(String(banned.body.errorMessage), /^Houve muitas tentativas sem sucesso. Tente de novo em (10|9) minutos/);
  shop.answer = { body: {} };
  assert.equal((await submit("s2", "c1")).status, 429, "another session of the customer");
  assert.equal((await submit("s1", "c2")).status, 429, "another customer in the session");
  assert.equal((await submit("s3", "c3")).status, 200);
  await shop.close();
});

// covers: B-04
test("express, soft-ban: a payment API that fails is neither a ban nor a success", async () => {
  const shop = await startShop();
  const unknown = /^Não foi possível confirmar o pagamento/;
  const failures: ApiAnswer[] = [
    { status: 503, body: { title: "unavailable" } },
    { status: 500, body: {} },
    { status: 503, body: { reject_id: 0 } },
    { status: 502, body: null },
    { body: "<html>" },
    "hang up",
  ];
  for (const answer of failures) {
    shop.answer = answer;
    const { status, body } = await shop.submit("s1", "c1");
    assert.deepEqual([status, body.success, body.error], [502, false, true], JSON.stringify(answer));
    assert.match(String(body.errorMessage), unknown);
  }
  shop.answer = { status: 402, body: { title: "insufficient funds" } };
  const { status, body } = await shop.submit("s1", "c1");
  assert.deepEqual([status, body.success], [400, false]);
  shop.answer = { body: {} };
  assert.deepEqual(await shop.submit("s1", "c1"), SUCCESS);
  await shop.close();
});

test("express, dict: DICT's answer is the price, and a payment gives a token back", async () => {
  const folder = copyExample("express");
  const server = await startServer(preset("dict"));
  const known = { status: 200, body: { owner: "ana" } };
  const unknown = { status: 404, body: { title: "not found" } };
  const api = await startApi((path) => (path.endsWith("/ana") ? known : unknown));
  const variables = { DICT_URL: api.url, PARTICIPANT: "12345678" };
  const env = { ...environment(server, await freePort()), ...variables };
  const { url, stop } = await start(process.execPath, ["dict.js"], folder, env);
  const payer = "11144477735";
  const catraca = new Catraca({ url: server.url, key: server.keys.check, deadlineMs: 5_000 });
  const subject = { participant: "12345678", payer };
  const payerRow = async () => {
    const { policies } = await catraca.peek("getEntry.EMAIL", subject);
    return policies.find(({ policy }) => policy === "entries_read_user_antiscan");
  };
  const waitForTokens = (tokens: number) =>
    waitUntil(`${tokens} tokens`, async () => (await payerRow())?.remaining === tokens);
  const lookUp = async (key: string, id: string) =>
    (await fetch(`${url}/entries/EMAIL/${key}?payer=${payer}&endToEndId=${id}`)).status;
  const pay = async (id: string) => {
    const query = `payer=${payer}&endToEndId=${id}`;
    const response = await fetch(`${url}/payments?${query}`, { method: "POST" });
    return ((await response.json()) as { credited: boolean }).credited;
  };
  const full = (await payerRow())?.limit ?? 0;
  assert.equal(full, 99, "one less than the bank's 100: the margin of the preset");
  assert.equal(await lookUp("ana", "E1"), 200);
  await waitForTokens(full - 1);
  assert.deepEqual([await pay("E1"), await pay("E1")], [true, false], "once for each lookup");
  await waitForTokens(full);
  for (let count = 1; count <= 5; count += 1) {
    assert.equal(await lookUp("unknown", `N${count}`), 404);
    await waitForTokens(Math.max(0, full - 20 * count));
  }
  assert.equal(await lookUp("ana", "E2"), 429, "five unknown keys use up the tokens of a person");
  await stop();
  await api.close();
  await server.stop();
});

// covers: 003-42, X-32
test("deno: four edge functions of a checkout", async () => {
  const folder = copyExample("deno");
  installPackage(folder);
  const server = await startServer(preset("checkout"));
  const env = environment(server, await freePort());
  const deno = join(MODULES, ".bin", "deno");
  const flags = ["--no-lock", "--no-remote", "--check", "--allow-net=127.0.0.1", "--allow-env"];
  const { url, stop } = await start(deno, ["run", ...flags, "main.ts"], folder, env);
  const call = (path: string, ip: string) =>
    fetch(url + path, { method: "POST", headers: { "X-Forwarded-For": ip } });
  const statuses = async (path: string, count: number) => {
    const seen: number[] = [];
    for (let n = 0; n < count; n += 1) seen.push((await call(path, "203.0.113.71")).status);
    return seen;
  };
  const allowed = (count: number) => Array<number>(count).fill(200);
  assert.deepEqual(await statuses("/gdpr-forget", 6), [...allowed(5), 429]);
  assert.deepEqual(await statuses("/buyer-login", 11), [...allowed(10), 429]);
  assert.deepEqual(await statuses("/mercadopago-create-payment", 61), [...allowed(60), 429]);
  assert.deepEqual(await statuses("/stripe-create-payment", 61), [...allowed(60), 429]);

  const login = await call("/buyer-login", "203.0.113.71");
  const body = (await login.json()) as { error: string; retryAfter: number };
  assert.equal(body.error, "Rate limit exceeded");
  assert.equal(String(body.retryAfter), login.headers.get("retry-after"));
  assert.equal(login.headers.get("access-control-allow-origin"), "https://shop.example");

  const admin = new Catraca({ url: server.url, key: server.keys.admin, deadlineMs: 5_000 });
  await addToBlocklist(admin, "203.0.113.72");
  assert.equal((await call("/gdpr-forget", "203.0.113.72")).status, 403);
  assert.equal((await call("/stripe-create-payment", "203.0.113.72")).status, 200);
  await stop();
  await server.stop();
});

/** The test route is for administrators alone, and shows and runs what the server's own does. */
async function checkTestRoute(url: string, keys: { admin: string; check: string }) {
  const call = async (key?: string, action?: string) => {
    const headers = new Headers({ "X-Forwarded-For": "203.0.113.76" });
    if (key) headers.set("Authorization", `Bearer ${key}`);
    const init: RequestInit = action
      ? { method: "POST", headers, body: JSON.stringify({ action }) }
      : { headers };
    const response = await fetch(`${url}/api/rate-limit/test`, init);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  assert.equal((await call()).status, 401);
  assert.equal((await call("catraca_wrong", "clear_locks")).status, 401);
  assert.equal((await call(keys.check, "clear_rate_limits")).status, 403);
  const shown = await call(keys.admin);
  assert.equal(shown.status, 200);
  assert.ok(["limits", "locks", "active", "ttl_ms"].every((field) => field in shown.body));
  for (const action of ["test_rate_limit", "test_lock", "test_concurrent_appointments"]) {
    const { status, body } = await call(keys.admin, action);
    assert.deepEqual([status, body.action, body.ok], [200, action, true]);
  }
}

// covers: 004-70, 004-94, X-32, B-67
test("nextjs: limits before every route, a guarded route, bookings without overlap", async () => {
  const folder = copyExample("nextjs");
  const server = await startServer(preset("booking"));
  const proxy = await startProxy(server.url);
  const env = environment({ ...server, url: proxy.url }, await freePort());
  const next = join(MODULES, "next", "dist", "bin", "next");
  execFileSync(process.execPath, [next, "build"], { cwd: folder, env, stdio: "inherit" });
  const args = [next, "start", "--hostname", "127.0.0.1", "--port", String(env.PORT)];
  const { url, stop } = await start(process.execPath, args, folder, env);
  const headers = (ip: string) => ({ "X-Forwarded-For": ip, "X-Tenant-Id": "t1", "X-Shop-Slug": "ana" });

  const services = () => fetch(`${url}/api/services`, { headers: headers("203.0.113.73") });
  const first = await services();
  assert.equal(first.status, 200);
  assert.match(first.headers.get("ratelimit") ?? "", /"public:60s";r=59/);
  const burst = await Promise.all(Array.from({ length: 100 }, services));
  const denied = burst.find((response) => response.status === 429);
  assert.ok(denied, "more than 60 a minute are denied");
  const body = (await denied.json()) as Record<string, unknown>;
  assert.equal(body.conflict, true);
  assert.match(String(body.error), /^(Você abriu páginas|Este endereço fez pedidos) demais/);

  const logIn = (password: string) =>
    fetch(`${url}/api/auth/login`, {
      method: "POST",
      headers: headers("203.0.113.75"),
      body: JSON.stringify({ password }),
    });
  const right = await logIn("correct");
  assert.equal(right.status, 200);
  assert.match(right.headers.get("ratelimit") ?? "", /"login_client:60s";r=9/, "not charged twice");
  assert.equal((await logIn("wrong")).status, 401);
  const attempts = await Promise.all(Array.from({ length: 12 }, () => logIn("wrong")));
  const refused = attempts.find((response) => response.status === 429);
  assert.ok(Number(refused?.headers.get("retry-after")) >= 1, "the guard of the route denies");
  assert.ok(attempts.some((response) => response.status === 401));

  const book = async (start_at: string, fail = false) => {
    const booking = JSON.stringify({ employee: "ana", start_at, duration: 30, fail });
    const init = { method: "POST", headers: headers("203.0.113.74"), body: booking };
    return (await fetch(`${url}/api/appointments`, init)).status;
  };
  const ten = "2030-01-07T10:00:00Z";
  assert.equal(await book(ten, true), 500, "a failed booking");
  const statuses = await Promise.all([book(ten), book(ten)]);
  assert.deepEqual(statuses.sort(), [201, 409], "its time is free again, for one of two");
  assert.equal(await book("2030-01-07T10:15:00Z"), 409);
  assert.equal(await book("2030-01-07T10:30:00Z"), 201);
  proxy.path = "/v1/slots/confirm";
  proxy.mode = "error";
  assert.equal(await book("2030-01-07T11:00:00Z"), 201, "it was stored, and the confirmation failed");
  assert.ok(proxy.calls.includes("/v1/slots/confirm"));
  await checkTestRoute(url, server.keys);
  await stop();
  await proxy.close();
  await server.stop();
});

// covers: B-67
test("booking.py: what was stored is a 201, and what failed is a 500, however the hold ends", async () => {
  const folder = copyExample("booking");
  const server = await startServer(readFileSync(join(folder, "catalog.toml"), "utf8"));
  const proxy = await startProxy(server.url);
  const env = environment(server, await freePort());
  const args = ["booking.py", String(env.PORT), proxy.url];
  const { url, stop } = await start("python3", args, folder, env);
  const book = async (start_at: string, fail = false) => {
    const body = JSON.stringify({ employee: "ana", start_at, duration: 30, fail });
    return (await fetch(`${url}/api/appointments`, { method: "POST", body })).status;
  };
  const attempts = (path: string) => proxy.calls.filter((call) => call === path).length;
  for (const [mode, hour] of [["error", 10], ["cut", 11]] as const) {
    proxy.mode = mode;
    proxy.path = "/v1/slots/confirm";
    assert.equal(await book(`2030-01-07T${hour}:00:00Z`), 201, `${mode}: stored`);
    proxy.path = "/v1/slots/cancel";
    assert.equal(await book(`2030-01-07T${hour}:30:00Z`, true), 500, `${mode}: not stored`);
    proxy.path = "/v1/slots/hold";
    assert.equal(await book(`2030-01-08T${hour}:00:00Z`), 503, `${mode}: not held`);
  }
  assert.deepEqual([attempts("/v1/slots/confirm"), attempts("/v1/slots/cancel")], [6, 6]);
  proxy.path = "/v1/slots/confirm";
  proxy.remaining = 1;
  assert.equal(await book("2030-01-07T12:00:00Z"), 201);
  const view = await new Catraca({ url: server.url, key: server.keys.check }).calendar({
    calendar: "ana",
    tenant: "tenant_1",
    from: "2030-01-07T12:00:00Z",
    to: "2030-01-07T12:30:00Z",
  });
  assert.deepEqual(view.busy.map(({ state }) => state), ["confirmed"], "the second attempt");
  await stop();
  await proxy.close();
  await server.stop();
});
