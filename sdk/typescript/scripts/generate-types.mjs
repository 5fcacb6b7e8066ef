// Writes src/generated/api.ts: the schemas of docs/openapi.json as TypeScript types.
import { readFile, writeFile } from "node:fs/promises";

import openapiTypescript, { astToString } from "openapi-typescript";

const DOCUMENT = new URL("../../../docs/openapi.json", import.meta.url);
const OUTPUT = new URL("../src/generated/api.ts", import.meta.url);
const HEAD = "// Generated from docs/openapi.json by `npm run generate`; do not edit.\n\n";

/** The text of the generated file. */
export async function generateTypes(document = DOCUMENT) {
  const { openapi, info, components } = JSON.parse(await readFile(document, "utf8"));
  // Only the bodies are used; without the calls the file is a tenth of the size.
  const schemas = { openapi, info, paths: {}, components: { schemas: components.schemas } };
  return HEAD + astToString(await openapiTypescript(schemas, { silent: true }));
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  await writeFile(OUTPUT, await generateTypes());
}
