/** The client: decisions, locks and slots of one Catraca server. */
import { AddressWatch } from "./address-watch.js";
import { BlockCache } from "./block-cache.js";
import { UnavailableError } from "./errors.js";
import { OutageLog, decideByFailureMode } from "./failure.js";
import { Locks } from "./locks.js";
import type {
  CalendarQuery,
  HeldLease,
  LeaseProof,
  LockOptions,
  SlotOptions,
  SlotRange,
} from "./locks.js";
import { readOptions } from "./settings.js";
import type { ClientOptions, Settings, Warning } from "./settings.js";
import { Transport } from "./transport.js";
import type { CallBounds } from "./transport.js";
import type {
  CalendarView,
  ConfirmedSlot,
  CreditOutcome,
  Decision,
  EndedLease,
  FailureMode,
  GateMap,
  GateName,
  GrantedLease,
  LockConflict,
  Outcome,
  RenewedLease,
  Settlement,
  Subject,
} from "./types.js";
import { findMisconfiguration } from "./verify.js";

export interface PeekOptions extends CallBounds {
  /** Units to charge; by default what the policy says, or 1. */
  cost?: number | undefined;
  /** A name under which the check is remembered, to settle or credit it later. */
  ref?: string | undefined;
  /** Whether the allowlist and the blocklist apply; true by default. */
  lists?: boolean | undefined;
}

export interface CheckOptions extends PeekOptions {
  /** In place of the client's `onFailure`. */
  onFailure?: FailureMode | undefined;
}

/** The check to settle: its decision, its ticket, or its `ref` and subject. */
export type SettleTarget = string | { ticket?: string | null } | { ref: string; subject: Subject };

export class Catraca<G extends GateMap = GateMap> {
  /** Only a type, which guards infer their gates from; it has no value. */
  declare readonly gates?: G;
  /** The `onFailure` of the options; undefined if they have none. */
  readonly onFailure: FailureMode | undefined;

  readonly #settings: Settings;
  readonly #transport: Transport;
  readonly #locks: Locks;
  readonly #blocks: BlockCache | null;
  readonly #addresses = new AddressWatch();
  /** Null if the program has set `onUnavailable` and so gets each failure itself. */
  readonly #outage: OutageLog | null;

  constructor(options: ClientOptions = {}) {
    this.#settings = readOptions(options);
    this.onFailure = this.#settings.onFailure;
    this.#transport = new Transport(this.#settings);
    const { deadlineMs, onWarning } = this.#settings;
    this.#locks = new Locks(this.#transport, deadlineMs, onWarning);
    const { blockCache } = this.#settings;
    this.#blocks = blockCache && new BlockCache(blockCache);
    this.#outage = this.#settings.onUnavailable ? null : new OutageLog();
  }

  /**
   * Asks whether a request may pass, and charges it. Sent once: after a lost answer, it is unknown
   * whether it was counted. While Catraca is unavailable, it rejects with `UnavailableError`; with
   * `onFailure: "open"` or `"closed"` it is a decision with `degraded: true` and the reason
   * `unavailable`.
   */
  async check<N extends GateName<G>>(
    gate: N,
    subject: G[N],
    options: CheckOptions = {},
  ): Promise<Decision> {
    if (this.#addresses.note(subject)) this.#warn(this.#addresses.warnings());
    const lists = options.lists ?? true;
    const cached = this.#blocks?.find(gate, subject, lists);
    if (cached) return cached;
    const askedAt = this.#blocks?.now() ?? 0;
    const decision = await this.#checkOrFail(gate, subject, options);
    if (!decision.allowed) this.#blocks?.store(gate, subject, lists, decision, askedAt);
    return decision;
  }

  /**
   * The decision that a check would get now; nothing is charged. Without an answer it rejects with
   * `UnavailableError`: `onFailure` is for checks.
   */
  async peek<N extends GateName<G>>(
    gate: N,
    subject: G[N],
    options: PeekOptions = {},
  ): Promise<Decision> {
    return this.#ask("/v1/peek", gate, subject, options, true);
  }

  /** Reports what became of a check. Null if the decision has no ticket: nothing is to settle. */
  async settle(
    target: SettleTarget,
    outcome: Outcome,
    bounds?: CallBounds,
  ): Promise<Settlement | null> {
    const check = checkFields(target);
    if (check === null) return null;
    const call = { ...bounds, body: { ...check, outcome }, retry: true };
    return (await this.#transport.call<Settlement>("/v1/settle", call)).body;
  }

  /** Gives units back for an event after a check, as the policy's `credit` says. */
  async credit(
    ref: string,
    event: string,
    subject: Subject,
    bounds?: CallBounds,
  ): Promise<CreditOutcome> {
    const call = { ...bounds, body: { ref, event, subject } };
    return (await this.#transport.call<CreditOutcome>("/v1/credit", call)).body;
  }

  /** Acquires a lock on a name, or on several names at once. A conflict is a value. */
  acquireLock(
    name: string | string[],
    options: LockOptions = {},
  ): Promise<GrantedLease | LockConflict> {
    return this.#locks.acquire(name, options);
  }

  /** Extends a lease; null if it has ended. */
  renewLock(lease: LeaseProof, ttlMs?: number, bounds?: CallBounds): Promise<RenewedLease | null> {
    return this.#locks.renew(lease, ttlMs, bounds);
  }

  releaseLock(lease: LeaseProof, bounds?: CallBounds): Promise<EndedLease> {
    return this.#locks.release(lease, bounds);
  }

  /**
   * Runs a function while a lock is held and renewed. Rejects with `LockTakenError` if the name is
   * taken. When the lock is lost, `held.signal` aborts; the result of the function is still yours. A
   * release that fails is a warning: the lock then ends with its TTL.
   */
  withLock<T>(
    name: string | string[],
    run: (held: HeldLease) => Promise<T> | T,
    options: LockOptions = {},
  ): Promise<T> {
    return this.#locks.withLock(name, run, options);
  }

  /** Holds a range of time; a conflict is a value. */
  holdSlot(range: SlotRange, options: SlotOptions = {}): Promise<GrantedLease | LockConflict> {
    return this.#locks.hold(range, options);
  }

  /** Books a held range; null if the hold has ended. */
  confirmSlot(
    lease: LeaseProof,
    reacquireIfFree = false,
    bounds?: CallBounds,
  ): Promise<ConfirmedSlot | null> {
    return this.#locks.confirm(lease, reacquireIfFree, bounds);
  }

  cancelSlot(lease: LeaseProof, bounds?: CallBounds): Promise<EndedLease> {
    return this.#locks.cancel(lease, bounds);
  }

  /** The free and busy ranges of a calendar now; only a hold reserves one. */
  calendar(query: CalendarQuery, bounds?: CallBounds): Promise<CalendarView> {
    return this.#locks.calendar(query, bounds);
  }

  /**
   * Holds a range of time while a function runs, then confirms it; cancels it if the function
   * throws. Rejects with `LockTakenError` if the range is taken. What the function has done stays
   * done: if the range cannot be confirmed then, its result is returned and `onWarning` is called.
   */
  withSlot<T>(
    range: SlotRange,
    run: (held: HeldLease) => Promise<T> | T,
    options: SlotOptions = {},
  ): Promise<T> {
    return this.#locks.withSlot(range, run, options);
  }

  /**
   * Reports misconfiguration: the key and its role, the gates, the clock, one address for all
   * checks. Charges nothing, and rejects only with the reason of its own signal; the deadline is
   * that of each of its calls.
   */
  async verify(gates: readonly GateName<G>[] = [], bounds: CallBounds = {}): Promise<Warning[]> {
    const found = await findMisconfiguration(this.#transport, gates, bounds);
    const warnings = [...found, ...this.#addresses.warnings()];
    this.#warn(warnings);
    return warnings;
  }

  /** Any call of the HTTP API: its body. */
  async request<T>(method: string, path: string, body?: unknown): Promise<T> {
    return (await this.#transport.call<T>(path, { method, body })).body;
  }

  /** Reports a failure that must not change the answer to a client, such as a failed settle. */
  reportFailure(error: unknown): void {
    this.#settings.onUnavailable?.(error instanceof Error ? error : new Error(String(error)));
  }

  /** Calls `onWarning`, for what must not change the answer to a client. */
  reportWarning(warning: Warning): void {
    this.#settings.onWarning(warning);
  }

  #warn(warnings: Warning[]): void {
    for (const warning of warnings) this.reportWarning(warning);
  }

  /** A check; the failure mode decides if the server does not answer. */
  async #checkOrFail(gate: string, subject: Subject, options: CheckOptions): Promise<Decision> {
    try {
      const decision = await this.#ask("/v1/check", gate, subject, options, false);
      this.#outage?.onAnswer();
      return decision;
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      this.reportFailure(error);
      this.#outage?.onFailure(error);
      const mode = options.onFailure ?? this.onFailure ?? "error";
      if (mode === "error") throw error;
      return decideByFailureMode(mode);
    }
  }

  async #ask(
    path: string,
    gate: string,
    subject: Subject,
    options: PeekOptions,
    retry: boolean,
  ): Promise<Decision> {
    const { cost, ref, lists, signal, deadlineMs } = options;
    const body = { gate, subject, cost, ref, lists };
    const call = { body, signal, retry, deadlineMs };
    const { body: decision } = await this.#transport.call<Decision>(path, call);
    if (typeof decision?.allowed === "boolean") return decision;
    throw new UnavailableError("the response is not a decision; does `url` name Catraca?");
  }
}

function checkFields(target: SettleTarget): object | null {
  if (typeof target === "string") return { ticket: target };
  if ("ref" in target) return { ref: target.ref, subject: target.subject };
  return target.ticket ? { ticket: target.ticket } : null;
}
