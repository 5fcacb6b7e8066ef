// The table of examples/README.md: the lines that an application adds because of Catraca.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { REPOSITORY } from "./support/server.js";

const EXAMPLES = join(REPOSITORY, "examples");
const MOST_LINES = 10;

/** The rule of the README, for a file of any of the languages. */
function countGlue(file: string): number {
  let lines = 0;
  let inside = false;
  for (const line of readFileSync(join(EXAMPLES, file), "utf8").split("\n")) {
    const text = line.trim();
    if (/^\/\/ glue: (begin|end)$/.test(text)) inside = text.endsWith("begin");
    else if (text === "" || /^(\/\/|\/\*|\*)/.test(text)) continue;
    else if (inside || text.endsWith("// glue") || /catraca/i.test(text)) lines += 1;
  }
  return lines;
}

test("the table of glue lines is that of the files, and no system needs more than ten", () => {
  const readme = readFileSync(join(EXAMPLES, "README.md"), "utf8");
  const before: string[] = [];
  for (const [, system, old, after, links] of readme.matchAll(
    /^\| ([^|]+) \| ([^|]*?) ?\| (\d+) \| (\[.*\]) ?\(?.*\|$/gm,
  )) {
    const files = [...(links ?? "").matchAll(/\[([^\]]+)\]/g)].map(([, file]) => file ?? "");
    const found = files.reduce((sum, file) => sum + countGlue(file), 0);
    console.log(`glue of ${system}: ${old || "-"} lines before, ${found} after`);
    assert.equal(found, Number(after), system);
    assert.ok(found > 0 && found <= MOST_LINES, `${system}: ${found} lines`);
    if (old) before.push(old);
  }
  assert.deepEqual(before, ["43", "181", "91", "62", "101"]);
});
