// Builds dist/: ES modules and CommonJS, each with types.
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { rmSync, writeFileSync } from "node:fs";

const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");

rmSync("dist", { recursive: true, force: true });
for (const [config, folder, type] of [
  ["tsconfig.json", "dist/esm", "module"],
  ["tsconfig.cjs.json", "dist/cjs", "commonjs"],
]) {
  execFileSync(process.execPath, [tsc, "--project", config], { stdio: "inherit" });
  // The nearest package.json says how Node and TypeScript read the files below it.
  writeFileSync(`${folder}/package.json`, `${JSON.stringify({ type })}\n`);
}
