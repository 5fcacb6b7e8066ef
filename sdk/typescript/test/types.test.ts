// Checked by the compiler: a line under `@ts-expect-error` that compiles is an error of the build.
import { test } from "node:test";

import { Catraca } from "@catraca/client";
import { RATE_LIMIT_CONFIGS, checkRateLimit } from "@catraca/client/checkout";
import { guarded } from "@catraca/client/edge";
import { guard as expressGuard } from "@catraca/client/express";
import { guard as fastifyGuard } from "@catraca/client/fastify";
import { guard as honoGuard } from "@catraca/client/hono";
import type { RequestHandler } from "express";
import type { MiddlewareHandler } from "hono";
import type { RouteShorthandOptions } from "fastify";

// As `catraca types --lang ts` prints it.
type Gates = { login: { ip: string }; search: { ip: string; tenant?: string } };

function neverCalled(catraca: Catraca<Gates>, anyGate: Catraca): void {
  void catraca.check("login", { ip: "198.51.100.7" });
  void catraca.check("search", { ip: "198.51.100.7", tenant: "t1" });
  void anyGate.check("whatever", { any: 1 });
  // @ts-expect-error: no such gate
  void catraca.check("logn", { ip: "198.51.100.7" });
  // @ts-expect-error: the policies of this gate need `ip`
  void catraca.check("login", {});
  // @ts-expect-error: no policy of this gate reads `tenant`
  void catraca.check("login", { ip: "198.51.100.7", tenant: "t1" });
  // @ts-expect-error: no such gate
  void catraca.verify(["login", "serch"]);
  // @ts-expect-error: no such mode
  void catraca.check("login", { ip: "198.51.100.7" }, { onFailure: "maybe" });

  guarded(catraca, { gate: "login" }, () => new Response());
  // @ts-expect-error: no such gate
  guarded(catraca, { gate: "logn" }, () => new Response());

  const express: RequestHandler = expressGuard(catraca, { gate: "login" });
  const fastify: RouteShorthandOptions = fastifyGuard(catraca, { gate: "login" }).route;
  const hono: MiddlewareHandler = honoGuard(catraca, { gate: "login" });
  void [express, fastify, hono];
}

// covers: 003-06
test("a misspelt gate and an inline configuration do not compile", () => {
  const inline = (client: Catraca) => {
    void checkRateLimit(client, "198.51.100.7", RATE_LIMIT_CONFIGS.GDPR_FORGET);
    const limits = { action: "a", maxAttempts: 5, windowMinutes: 60, blockDurationMinutes: 60 };
    // @ts-expect-error: limits belong into the catalog
    void checkRateLimit(client, "198.51.100.7", limits);
    // @ts-expect-error: no such configuration
    void checkRateLimit(client, "198.51.100.7", RATE_LIMIT_CONFIGS.GDPR_FORGOTTEN);
  };
  void [neverCalled, inline];
});
