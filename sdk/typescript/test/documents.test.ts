// The TypeScript of the documents compiles, so that it cannot fall behind the package.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { compileErrors, writeProgram } from "./support/compile.js";
import { codeBlocks } from "./support/documents.js";
import type { CodeBlock } from "./support/documents.js";
import { ROOT } from "./support/install.js";

const GATES = "export type Gates = { login: { ip: string } };\n";

/** The application and the handler that a block adds a guard to. */
const FRAMEWORKS = {
  fastify: ['import("fastify").FastifyInstance', 'import("fastify").RouteHandler'],
  hono: ['import("hono").Hono', 'import("hono").Handler'],
  express: ['import("express").Express', 'import("express").RequestHandler'],
} as const;

/** A block as a module: its imports first, then its statements, which may `await` and `return`. */
function moduleOf({ text }: CodeBlock): string {
  const lines = text.split("\n");
  const imports = lines.filter((line) => line.startsWith("import "));
  const isImported = imports.some((line) => line.includes("{ Catraca }"));
  if (!isImported) imports.push('import { Catraca } from "@catraca/client";');
  const rest = lines.filter((line) => !line.startsWith("import "));
  const names = Object.keys(FRAMEWORKS) as (keyof typeof FRAMEWORKS)[];
  const used = names.find((name) => text.includes(`@catraca/client/${name}`)) ?? "express";
  const [app, login] = FRAMEWORKS[used];
  const context = [`declare const app: ${app};`, `declare const login: ${login};`];
  // A line that must not compile says so in a comment.
  const body = rest.flatMap((line) =>
    line.includes("// error: ") ? ["// @ts-expect-error", line] : [line],
  );
  const isModule = rest.some((line) => line.startsWith("export "));
  const wrapped = isModule ? body : ["export async function block() {", ...body, "}"];
  return [...imports, ...context, ...wrapped, ""].join("\n");
}

const DOCUMENTS = ["docs/guide/clients.md", "sdk/typescript/README.md", "llms.txt"];

test("the TypeScript of the guide, of the README and of llms.txt compiles", () => {
  const globals = readFileSync(join(ROOT, "test", "fixtures", "documents.d.ts"), "utf8");
  const files: Record<string, string> = { "globals.d.ts": globals, "gates.ts": GATES };
  for (const document of DOCUMENTS) {
    const blocks = codeBlocks(document).filter(({ tag }) => tag === "ts");
    assert.ok(blocks.length > 0, document);
    console.log(`${document}: ${blocks.length} blocks of TypeScript`);
    // An error names the document and the line of the block.
    const name = document.replaceAll("/", "-");
    for (const block of blocks) files[`${name}-${block.line}.ts`] = moduleOf(block);
  }
  const folder = writeProgram("documents", files);
  assert.deepEqual(compileErrors(folder, Object.keys(files)), []);
});
