// The code blocks of a document.
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { REPOSITORY } from "./server.js";

export interface CodeBlock {
  /** The words after the fence, such as `ts,file=before.ts`. */
  tag: string;
  /** The heading above it. */
  heading: string;
  /** The line of the fence. */
  line: number;
  text: string;
}

export function codeBlocks(document: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let open: CodeBlock | null = null;
  let heading = "";
  const lines = readFileSync(join(REPOSITORY, document), "utf8").split("\n");
  for (const [index, line] of lines.entries()) {
    if (!line.startsWith("```")) {
      if (open) open.text += `${line}\n`;
      else if (line.startsWith("#")) heading = line.replace(/^#+ /, "");
    } else if (open) {
      blocks.push(open);
      open = null;
    } else {
      open = { tag: line.slice(3).trim(), heading, line: index + 1, text: "" };
    }
  }
  return blocks;
}
