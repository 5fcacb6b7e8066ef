// What a page or an edge function downloads: minified, with everything that it imports.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

import { buildSync } from "esbuild";

const DIST = join(import.meta.dirname, "..", "dist", "esm");
const KIB = 1024;
const LIMITS: Record<string, number> = {
  index: 8 * KIB,
  "adapters/express": 2 * KIB,
  "adapters/fastify": 2 * KIB,
  "adapters/hono": 2 * KIB,
  "adapters/next": 2 * KIB,
  "adapters/edge": 2 * KIB,
  // With the client, and in booking with the guard of Next.js.
  "compat/booking": 9 * KIB,
  "compat/checkout": 3 * KIB,
};

for (const [entry, limit] of Object.entries(LIMITS)) {
  test(`${entry} is at most ${limit / KIB} KiB, minified and compressed`, () => {
    const bundle = buildSync({
      entryPoints: [join(DIST, `${entry}.js`)],
      bundle: true,
      minify: true,
      format: "esm",
      target: "es2022",
      write: false,
    });
    const bytes = gzipSync(bundle.outputFiles[0]?.contents ?? "").length;
    console.log(`size of ${entry}: ${bytes} bytes`);
    assert.ok(bytes > 100 && bytes <= limit, `${bytes} bytes`);
  });
}
