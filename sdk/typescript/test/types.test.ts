// Checked by the compiler: a line under `@ts-expect-error` that compiles is an error of the build.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import type { Catraca } from "@catraca/client";
import { RATE_LIMIT_CONFIGS, checkRateLimit } from "@catraca/client/checkout";

import { compileErrors, writeProgram } from "./support/compile.js";
import { ROOT } from "./support/install.js";
import { BINARY, CATALOG, preset } from "./support/server.js";

/** What `catraca types --lang ts` prints for a catalog. */
function printTypes(catalog: string, ...options: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), "catraca-types-"));
  const file = join(folder, "catalog.toml");
  writeFileSync(file, catalog);
  const args = ["types", "--lang", "ts", ...options, "-c", file];
  const printed = execFileSync(BINARY, args, { encoding: "utf8" });
  rmSync(folder, { recursive: true });
  return printed;
}

test("a misspelt gate does not compile with the types that catraca prints", () => {
  const fixture = readFileSync(join(ROOT, "test", "fixtures", "typed-gates.ts"), "utf8");
  const misspelt = `${fixture}\nvoid catraca.check("logn", { ip: "198.51.100.7" });\n`;
  const gates = printTypes(CATALOG);
  const files = { "gates.ts": gates, "correct.ts": fixture, "misspelt.ts": misspelt };
  const folder = writeProgram("typed-gates", files);
  const [error, ...others] = compileErrors(folder, ["correct.ts", "misspelt.ts"]);
  assert.match(error ?? "", /^misspelt\.ts:\d+: TS2345 .*"logn"/);
  assert.deepEqual(others, []);
});

test("the helpers of a checkout take the limits of any catalog", async () => {
  const catalog = `${preset("checkout")}
[policy.coupon_redeem]
by = ["ip"]
window = "8 per 10m"
block = "1h"
`;
  const program = `
import { Catraca } from "@catraca/client";
import { checkRateLimit } from "@catraca/client/checkout";
import type { Gates } from "./limits.js";
import { RATE_LIMIT_CONFIGS } from "./limits.js";

const catraca = new Catraca<Gates>();
void checkRateLimit(catraca, "198.51.100.7", RATE_LIMIT_CONFIGS.COUPON_REDEEM);
void checkRateLimit(new Catraca(), "198.51.100.7", RATE_LIMIT_CONFIGS.GDPR_FORGET);
// @ts-expect-error: no such configuration
void checkRateLimit(catraca, "198.51.100.7", RATE_LIMIT_CONFIGS.COUPON);
`;
  const limits = printTypes(catalog, "--configs");
  const folder = writeProgram("checkout-limits", { "limits.ts": limits, "program.ts": program });
  assert.deepEqual(compileErrors(folder, ["program.ts"]), []);
  for (const [name, config] of Object.entries(RATE_LIMIT_CONFIGS)) {
    const { action, maxAttempts, windowMinutes, blockDurationMinutes } = config;
    const numbers = [maxAttempts, windowMinutes, blockDurationMinutes].join(", ");
    assert.ok(limits.includes(`  ${name}: rateLimitConfig("${action}", ${numbers}),\n`), name);
  }
});

// covers: 003-06
test("an inline configuration does not compile", () => {
  const inline = (client: Catraca) => {
    void checkRateLimit(client, "198.51.100.7", RATE_LIMIT_CONFIGS.GDPR_FORGET);
    const limits = { action: "a", maxAttempts: 5, windowMinutes: 60, blockDurationMinutes: 60 };
    // @ts-expect-error: limits belong into the catalog
    void checkRateLimit(client, "198.51.100.7", limits);
    // @ts-expect-error: no such configuration
    void checkRateLimit(client, "198.51.100.7", RATE_LIMIT_CONFIGS.GDPR_FORGOTTEN);
  };
  void inline;
});
