/** Finds misconfiguration at the start of a program. */
import { CatracaError } from "./errors.js";
import type { Warning } from "./settings.js";
import type { CallBounds, Transport } from "./transport.js";
import type { CatalogSummary, Decision, PolicyList, Whoami } from "./types.js";

/** Clocks that differ more than this are reported; a `Date` header has whole seconds. */
const CLOCK_DIFFERENCE_MS = 30_000;

export async function findMisconfiguration(
  transport: Transport,
  gates: readonly string[],
  bounds: CallBounds,
): Promise<Warning[]> {
  try {
    const get = { ...bounds, method: "GET", retry: true };
    const whoami = await transport.call<Whoami>("/v1/whoami", get);
    return [
      ...checkRole(whoami.body, transport.hasKey),
      ...checkClock(whoami.headers.get("date")),
      ...(await checkGates(transport, gates, bounds)),
    ];
  } catch (error) {
    bounds.signal?.throwIfAborted();
    return [explain(error)];
  }
}

function explain(error: unknown): Warning {
  if (error instanceof CatracaError && error.httpStatus === 401) {
    const detail = `the server refuses the key (${error.code}); make one with catraca keygen`;
    return { code: "key-refused", detail };
  }
  const detail = `${(error as Error).message}; checks follow onFailure until it answers`;
  return { code: "unavailable", detail };
}

function checkRole({ role, operator }: Whoami, hasKey: boolean): Warning[] {
  // Without keys in the catalog, every caller on this machine is an admin.
  if (role === "check" || (role === "admin" && !hasKey)) return [];
  if (role === "admin") {
    const detail = `the key ${operator} has the role admin, and a check needs only the role check`;
    return [{ code: "admin-key", detail }];
  }
  const detail = `the key ${operator} has the role ${role}, and a check needs the role check`;
  return [{ code: "wrong-role", detail }];
}

/** Browsers show no `Date` of another origin; then nothing is compared. */
function checkClock(date: string | null): Warning[] {
  const server = date === null ? NaN : Date.parse(date);
  const difference = Math.abs(Date.now() - server);
  if (!(difference > CLOCK_DIFFERENCE_MS)) return [];
  const seconds = Math.round(difference / 1000);
  const detail = `the clocks of this machine and of the server differ by ${seconds} s`;
  return [{ code: "clock-difference", detail }];
}

async function checkGates(
  transport: Transport,
  gates: readonly string[],
  bounds: CallBounds,
): Promise<Warning[]> {
  if (gates.length === 0) return [];
  try {
    return await compareWithCatalog(transport, gates, bounds);
  } catch (error) {
    const bound = error instanceof CatracaError && error.code === "namespace-bound-key";
    if (!bound) throw error;
    const found = await Promise.all(gates.map((gate) => peekGate(transport, gate, bounds)));
    return found.flat();
  }
}

/**
 * For a key that may not read the catalog. A gate that exists may refuse a subject without its
 * attributes, and so may the default policy, which then hides that the gate is unknown.
 */
async function peekGate(
  transport: Transport,
  gate: string,
  bounds: CallBounds,
): Promise<Warning[]> {
  try {
    const init = { ...bounds, body: { gate, subject: {} }, retry: true };
    const { unlisted, policy } = (await transport.call<Decision>("/v1/peek", init)).body;
    return unlisted ? [missingGate(gate, policy)] : [];
  } catch (error) {
    if (!(error instanceof CatracaError)) throw error;
    return error.code === "unknown-gate" ? [missingGate(gate, null)] : [];
  }
}

async function compareWithCatalog(
  transport: Transport,
  gates: readonly string[],
  bounds: CallBounds,
): Promise<Warning[]> {
  const get = { ...bounds, method: "GET", retry: true };
  const catalog = (await transport.call<CatalogSummary>("/v1/config", get)).body;
  const policies = (await transport.call<PolicyList>("/v1/policies", get)).body.policies;
  const known = new Set(policies.map((row) => row.policy));
  for (const row of catalog.gates) known.add(row.gate);
  const missing = gates.filter((gate) => !known.has(gate));
  return missing.map((gate) => missingGate(gate, catalog.default));
}

function missingGate(gate: string, fallback: string | null): Warning {
  const effect =
    fallback === null ? "every check of it will fail" : `the policy ${fallback} decides`;
  return { code: "unknown-gate", detail: `the catalog has no gate or policy ${gate}: ${effect}` };
}
