// The packed package in new projects: CommonJS, ES modules and TypeScript.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { ROOT } from "./support/install.js";
import { startServer } from "./support/server.js";
import type { TestServer } from "./support/server.js";

const SUBPATHS = ["express", "fastify", "hono", "next", "edge", "checkout", "booking"];
const NPM_QUIET = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts"];

let server: TestServer;
let folder: string;

before(async () => {
  server = await startServer();
  folder = mkdtempSync(join(tmpdir(), "catraca-packed-"));
  // The build of this run is packed as it is.
  run("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", folder], ROOT);
  writeFileSync(join(folder, "package.json"), "{}");
  const archive = readdirSync(folder).find((name) => name.endsWith(".tgz"));
  run("npm", ["install", ...NPM_QUIET, "--offline", `./${archive}`], folder);
});

after(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

function run(program: string, args: string[], cwd: string): string {
  const env = { ...process.env, CATRACA_URL: server.url, CATRACA_KEY: server.keys.check };
  return execFileSync(program, args, { cwd, env, encoding: "utf8" });
}

test("the package has its licences", () => {
  const files = readdirSync(join(folder, "node_modules", "@catraca", "client"));
  for (const name of ["LICENSE-APACHE", "LICENSE-MIT", "README.md"]) assert.ok(files.includes(name), name);
});

const CHECK = `
const { CATRACA_URL: url, CATRACA_KEY: key } = process.env;
new Catraca({ url, key, deadlineMs: 5000 }).check("login", { ip: "198.51.100.90" })
  .then((decision) => console.log(decision.reason));
`;

test("CommonJS: require of every entry", () => {
  const requires = SUBPATHS.map((name) => `require("@catraca/client/${name}");`).join("\n");
  const program = `const { Catraca } = require("@catraca/client");\n${requires}\n${CHECK}`;
  writeFileSync(join(folder, "main.cjs"), program);
  assert.equal(run("node", ["main.cjs"], folder).trim(), "ok");
});

test("ES modules: import of every entry", () => {
  const imports = SUBPATHS.map((name) => `import "@catraca/client/${name}";`).join("\n");
  const program = `import { Catraca } from "@catraca/client";\n${imports}\n${CHECK}`;
  writeFileSync(join(folder, "main.mjs"), program);
  assert.equal(run("node", ["main.mjs"], folder).trim(), "ok");
});

test("TypeScript: every entry has types, in both module systems and for bundlers", () => {
  const imports = SUBPATHS.map((name, at) => `import * as m${at} from "@catraca/client/${name}";`);
  const used = `export const used = [${SUBPATHS.map((_, at) => `m${at}`).join(", ")}];`;
  const wrong = [
    'type Gates = { login: { ip: string } };',
    "export const typed = (catraca: Catraca<Gates>) => {",
    '  void catraca.check("login", { ip: "198.51.100.7" });',
    "  // @ts-expect-error: no such gate",
    '  void catraca.check("logn", { ip: "198.51.100.7" });',
    "};",
  ];
  const program = ['import { Catraca } from "@catraca/client";', ...imports, used, ...wrong];
  for (const name of ["types.mts", "types.cts", "types.ts"]) {
    writeFileSync(join(folder, name), program.join("\n"));
  }
  const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  const strict = ["--strict", "--noEmit", "--target", "es2022"];
  const nodenext = ["--module", "nodenext", "types.mts", "types.cts"];
  run("node", [tsc, ...strict, ...nodenext], folder);
  const bundler = ["--module", "esnext", "--moduleResolution", "bundler", "types.ts"];
  run("node", [tsc, ...strict, ...bundler], folder);
});
