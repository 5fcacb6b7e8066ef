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

export interface PeekOptions {
  /** Units to charge; by default what the policy says, or 1. */
  cost?: number | undefined;
  /** A name under which the check is remembered, to settle or credit it later. */
  ref?: string | undefined;
  /** Whether the allowlist and the blocklist apply; true by default. */
  lists?: boolean | undefined;
  /** Aborts the call; the promise then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** In place of the client's `deadlineMs`. */
  deadlineMs?: number | undefined;
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
    this.#locks = new Locks(this.#transport, this.#settings.deadlineMs);
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
    const decision = await this.#checkOrFail(gate, subject, options);
    if (!decision.allowed) this.#blocks?.store(gate, subject, lists, decision);
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
  async settle(target: SettleTarget, outcome: Outcome): Promise<Settlement | null> {
    const check = checkFields(target);
    if (check === null) return null;
    const body = { ...check, outcome };
    return (await this.#transport.call<Settlement>("/v1/settle", { body, retry: true })).body;
  }

  /** Gives units back for an event after a check, as the policy's `credit` says. */
  async credit(ref: string, event: string, subject: Subject): Promise<CreditOutcome> {
    const body = { ref, event, subject };
    return (await this.#transport.call<CreditOutcome>("/v1/credit", { body })).body;
  }

  /** Acquires a lock on a name, or on several names at once. A conflict is a value. */
  acquireLock(
    name: string | string[],
    options: LockOptions = {},
  ): Promise<GrantedLease | LockConflict> {
    return this.#locks.acquire(name, options);
  }

  /** Extends a lease; null if it has ended. */
  renewLock(lease: LeaseProof, ttlMs?: number): Promise<RenewedLease | null> {
    return this.#locks.renew(lease, ttlMs);
  }

  releaseLock(lease: LeaseProof): Promise<EndedLease> {
    return this.#locks.release(lease);
  }

  /**
   * Runs a function while a lock is held and renewed. Rejects with `LockTakenError` if the name is
   * taken. When the lock is lost, `held.signal` aborts; the result of the function is still yours.
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
  confirmSlot(lease: LeaseProof, reacquireIfFree = false): Promise<ConfirmedSlot | null> {
    return this.#locks.confirm(lease, reacquireIfFree);
  }

  cancelSlot(lease: LeaseProof): Promise<EndedLease> {
    return this.#locks.cancel(lease);
  }

  /** The free and busy ranges of a calendar now; only a hold reserves one. */
  calendar(query: CalendarQuery): Promise<CalendarView> {
    return this.#locks.calendar(query);
  }

  /**
   * Holds a range of time while a function runs, then confirms it; cancels it if the function
   * throws. Rejects with `LockTakenError` if the range is taken, and with `LockLostError` if the
   * hold had ended before it could be confirmed.
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
   * checks. Charges nothing, and never rejects.
   */
  async verify(gates: readonly GateName<G>[] = []): Promise<Warning[]> {
    const found = await findMisconfiguration(this.#transport, gates);
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

  #warn(warnings: Warning[]): void {
    for (const warning of warnings) this.#settings.onWarning(warning);
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
