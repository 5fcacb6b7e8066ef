/** What all guards share: from a request to a decision, and from a response to a settle. */
import type { Catraca } from "../client.js";
import type { UnavailableError } from "../errors.js";
import type { Decision, FailureMode, GateMap, GateName, Subject } from "../types.js";
import { makeDenial } from "./denial.js";
import type { Denial, DenialOption } from "./denial.js";

/** What a guard needs of a client. */
export type GateClient<G extends GateMap> = Pick<
  Catraca<G>,
  "gates" | "check" | "settle" | "reportFailure"
>;

/** `R` is the request, as the framework passes it. */
export interface GuardOptions<R, G extends GateMap, N extends GateName<G>> {
  /** The gate, or a function that chooses it; null lets the request pass unchecked. */
  gate: N | ((request: R) => N | null);
  /** The attributes of the caller; `{ ip }` by default. */
  subject?: (request: R, ip: string | undefined) => G[N] | Promise<G[N]>;
  cost?: number | ((request: R) => number);
  /** Names the check, to settle or credit it later. */
  ref?: (request: R) => string;
  /** Whether the allowlist and the blocklist apply; true by default. */
  lists?: boolean;
  /** In place of the client's `onFailure`; with `error` a request that is not checked gets 503. */
  onFailure?: FailureMode;
  /** The body of a denial; `problem` by default. */
  denial?: DenialOption;
}

export interface Verdict {
  /** Null if no gate applies, or if Catraca did not answer. */
  decision: Decision | null;
  /** The response to a request that may not pass; null if it may. */
  denial: Denial | null;
}

/** No gate applies. */
export const UNGATED: Verdict = { decision: null, denial: null };

/** Decides about a request. A request that cannot be checked may not pass. */
export async function checkRequest<R, G extends GateMap, N extends GateName<G>>(
  client: GateClient<G>,
  request: R,
  ip: string | undefined,
  options: GuardOptions<R, G, N>,
): Promise<Verdict> {
  const gate = typeof options.gate === "function" ? options.gate(request) : options.gate;
  if (gate === null) return UNGATED;
  const address: Subject = { ip };
  const subject = options.subject ? await options.subject(request, ip) : (address as G[N]);
  const { ref, lists, onFailure } = options;
  const cost = typeof options.cost === "function" ? options.cost(request) : options.cost;
  try {
    const check = { cost, ref: ref?.(request), lists, onFailure };
    const decision = await client.check(gate, subject, check);
    return { decision, denial: decision.allowed ? null : makeDenial(decision, options.denial) };
  } catch (error) {
    // Not by class: the client may be of the other build (ES module or CommonJS).
    const denial = (error as Partial<UnavailableError> | undefined)?.denial;
    if (!denial) throw error;
    return { decision: null, denial };
  }
}

/** Settles with the status of the response. A failure is reported, and changes no response. */
export async function settleStatus<G extends GateMap>(
  client: GateClient<G>,
  decision: Decision | null,
  status: number | undefined,
): Promise<void> {
  if (!decision?.ticket) return;
  try {
    await client.settle(decision, status === undefined ? {} : { status });
  } catch (error) {
    client.reportFailure(error);
  }
}
