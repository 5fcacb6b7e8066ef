// Type-checks programs that are not part of this build, with the built package beside them.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import ts from "typescript";

import { ROOT, installPackage } from "./install.js";

const STRICT: ts.CompilerOptions = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  types: ["node"],
};

/** Writes files into a new folder beside this build, where the packages of the tests are found. */
export function writeProgram(name: string, files: Record<string, string>): string {
  const folder = join(ROOT, "test-build", name);
  rmSync(folder, { recursive: true, force: true });
  for (const [file, text] of Object.entries({ ...files, "package.json": '{"type":"module"}' })) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
  installPackage(join(ROOT, "test-build"));
  return folder;
}

/** The errors of the compiler as `file:line: TS2345 text`. */
export function compileErrors(folder: string, files: string[]): string[] {
  const program = ts.createProgram(
    files.map((file) => join(folder, file)),
    STRICT,
  );
  return ts.getPreEmitDiagnostics(program).map((found) => {
    const text = ts.flattenDiagnosticMessageText(found.messageText, " ");
    const start = found.file?.getLineAndCharacterOfPosition(found.start ?? 0);
    const place = `${found.file?.fileName.slice(folder.length + 1)}:${(start?.line ?? 0) + 1}`;
    return `${place}: TS${found.code} ${text}`;
  });
}
