/** Finds misconfiguration at the start of a program. */
import { CatracaError } from "./errors.js";
import type { Warning } from "./settings.js";
import type { Transport } from "./transport.js";
import type { CatalogSummary, PolicyList, Whoami } from "./types.js";

/** A `Date` header has whole seconds, so smaller differences mean nothing. */
const CLOCK_SKEW_MS = 5_000;
const ROLES_THAT_CHECK = ["check", "admin"];

export async function findMisconfiguration(
  transport: Transport,
  gates: readonly string[],
): Promise<Warning[]> {
  try {
    const whoami = await transport.call<Whoami>("/v1/whoami", { method: "GET", retry: true });
    return [
      ...checkRole(whoami.body),
      ...checkClock(whoami.headers.get("date")),
      ...(await checkGates(transport, gates)),
    ];
  } catch (error) {
    return [explain(error)];
  }
}

function explain(error: unknown): Warning {
  if (error instanceof CatracaError && error.httpStatus === 401) {
    const detail = `the server refuses the key (${error.code}); make one with catraca keygen`;
    return { code: "unknown-key", detail };
  }
  const detail = `${(error as Error).message}; checks follow onFailure until it answers`;
  return { code: "unreachable", detail };
}

function checkRole({ role, operator }: Whoami): Warning[] {
  if (ROLES_THAT_CHECK.includes(role)) return [];
  const detail = `the key ${operator} has the role ${role}, and a check needs the role check`;
  return [{ code: "role-too-low", detail }];
}

/** Browsers show no `Date` of another origin; then nothing is compared. */
function checkClock(date: string | null): Warning[] {
  const server = date === null ? NaN : Date.parse(date);
  const skew = Math.abs(Date.now() - server);
  if (!(skew > CLOCK_SKEW_MS)) return [];
  const detail = `the clocks of this machine and the server differ by ${Math.round(skew / 1000)} s`;
  return [{ code: "clock-skew", detail }];
}

async function checkGates(transport: Transport, gates: readonly string[]): Promise<Warning[]> {
  if (gates.length === 0) return [];
  try {
    return await compareWithCatalog(transport, gates);
  } catch (error) {
    const bound = error instanceof CatracaError && error.code === "namespace-bound-key";
    if (!bound) throw error;
    const found = await Promise.all(gates.map((gate) => peekGate(transport, gate)));
    return found.flat();
  }
}

/** For a key that may not read the catalog. A gate that exists may still lack attributes. */
async function peekGate(transport: Transport, gate: string): Promise<Warning[]> {
  try {
    await transport.call("/v1/peek", { body: { gate, subject: {} }, retry: true });
    return [];
  } catch (error) {
    if (!(error instanceof CatracaError)) throw error;
    return error.code === "unknown-gate" ? [missingGate(gate, null)] : [];
  }
}

async function compareWithCatalog(
  transport: Transport,
  gates: readonly string[],
): Promise<Warning[]> {
  const get = { method: "GET", retry: true };
  const catalog = (await transport.call<CatalogSummary>("/v1/config", get)).body;
  const policies = (await transport.call<PolicyList>("/v1/policies", get)).body.policies;
  const known = new Set(policies.map((row) => row.policy));
  for (const row of catalog.gates) known.add(row.gate);
  const missing = gates.filter((gate) => !known.has(gate));
  return missing.map((gate) => missingGate(gate, catalog.default));
}

function missingGate(gate: string, fallback: string | null): Warning {
  if (fallback === null) {
    const detail = `the catalog has no gate or policy ${gate}: every check of it will fail`;
    return { code: "unknown-gate", detail };
  }
  const detail = `the catalog does not name the gate ${gate}: the policy ${fallback} decides`;
  return { code: "unlisted-gate", detail };
}
