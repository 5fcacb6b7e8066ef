// Generated files are those that the generators make now.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { VERSION } from "@catraca/client";

import { ROOT } from "./support/install.js";
import { REPOSITORY, preset, startServer } from "./support/server.js";

const source = (name: string) => readFileSync(join(ROOT, "src", "generated", name), "utf8");
const script = (name: string) => import(pathToFileURL(join(ROOT, "scripts", name)).href);

test("the types are those of docs/openapi.json", async () => {
  const { generateTypes } = await script("generate-types.mjs");
  const document = pathToFileURL(join(REPOSITORY, "docs", "openapi.json"));
  assert.equal(source("api.ts"), await generateTypes(document), "run `npm run generate`");
});

test("the configurations of the checkout are those of its preset", async () => {
  const server = await startServer(preset("checkout"));
  const { generateConfigs } = await script("generate-configs.mjs");
  const headers = { Authorization: `Bearer ${server.keys.read}` };
  const text = await generateConfigs(server.url, headers);
  await server.stop();
  assert.equal(source("checkout-configs.ts"), text, "run scripts/generate-configs.mjs");
});

test("the version is that of the package, and there are no runtime dependencies", () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  assert.equal(VERSION, manifest.version);
  assert.equal(manifest.dependencies, undefined);
  assert.equal(manifest.peerDependencies, undefined);
});
