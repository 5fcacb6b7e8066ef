// The built package in the node_modules of a folder, as npm would install it.
import { cpSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "..", "..");

export function installPackage(folder: string): void {
  const target = join(folder, "node_modules", "@catraca", "client");
  for (const part of ["package.json", "dist"]) {
    cpSync(join(ROOT, part), join(target, part), { recursive: true });
  }
}
