// Writes src/generated/checkout-configs.ts from the policies of a server with presets/checkout:
// `node scripts/generate-configs.mjs http://127.0.0.1:7878`.
import { writeFile } from "node:fs/promises";

const OUTPUT = new URL("../src/generated/checkout-configs.ts", import.meta.url);
const MINUTES = { s: 1 / 60, m: 1, h: 60, d: 1440 };

/** The text of the generated file. */
export async function generateConfigs(url, headers = {}) {
  const response = await fetch(`${url}/v1/policies`, { headers });
  const { policies } = await response.json();
  const lines = policies.map(configLine).sort();
  return [
    "// Generated from presets/checkout by `scripts/generate-configs.mjs`; do not edit.",
    'import { rateLimitConfig } from "../compat/rate-limit-config.js";',
    "",
    "/** The limits of presets/checkout. The server decides by its catalog, not by these numbers. */",
    "export const RATE_LIMIT_CONFIGS = {",
    ...lines,
    "} as const;",
    "",
  ].join("\n");
}

/** `window 10 per 15m` and `30m` as numbers of attempts and minutes. */
function configLine({ policy, limit, block }) {
  const [, attempts, window] = /^window (\d+) per (\S+)$/.exec(limit);
  const numbers = [attempts, minutes(window), minutes(block)].join(", ");
  return `  ${policy.toUpperCase()}: rateLimitConfig("${policy}", ${numbers}),`;
}

function minutes(text) {
  const [, count, unit] = /^(\d+)([smhd])$/.exec(text);
  return Number(count) * MINUTES[unit];
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  await writeFile(OUTPUT, await generateConfigs(process.argv[2]));
}
