/** Locks and slots: the calls, and functions that run while a lease is held. */
import { CatracaError, LockLostError, LockTakenError } from "./errors.js";
import { LeaseKeeper } from "./lease-keeper.js";
import type { Warning } from "./settings.js";
import type { CallBounds, Transport } from "./transport.js";
import type {
  CalendarView,
  ConfirmedSlot,
  EndedLease,
  GrantedLease,
  InstantLike,
  LockConflict,
  RenewedLease,
} from "./types.js";

/** The bounds are those of each call about the lease; the signal ends only the first one. */
export interface LeaseOptions extends CallBounds {
  /** `payment`, `appointment`, `resource` or a kind of the catalog: it has the TTLs. */
  kind?: string | undefined;
  tenant?: string | undefined;
  /** The lifetime of the lease without a renewal. */
  ttlMs?: number | undefined;
  /** The longest time that renewals can extend the lease to. */
  maxHoldMs?: number | undefined;
  /** A number of your own, returned with the lease. */
  version?: number | undefined;
  /** The holder's name, shown to other callers. */
  ownerLabel?: string | undefined;
  /** Makes a repeated request return the same lease; random by default. */
  requestId?: string | undefined;
}

export interface LockOptions extends LeaseOptions {
  /** How long to wait for a taken name, at most 30,000; 0 by default. */
  waitMs?: number | undefined;
}

/** A range of time in a calendar, from `start` until just before `end`. */
export interface SlotRange {
  calendar: string | string[];
  start: InstantLike;
  end: InstantLike;
  bufferBeforeMs?: number;
  bufferAfterMs?: number;
}

export interface SlotOptions extends LeaseOptions {
  /** Confirm a hold that has ended meanwhile, if the range is still free; false by default. */
  reacquireIfFree?: boolean;
}

export interface CalendarQuery {
  calendar: string;
  from: InstantLike;
  to: InstantLike;
  tenant?: string;
  /** The lease of your own hold, whose range then counts as free. */
  without?: LeaseProof;
}

/** What a function gets while its lease is held. */
export interface HeldLease {
  /** Rises with every grant: send it with every write, and let the resource refuse a lower one. */
  fence: number;
  version: number;
  lease: GrantedLease;
  /** Aborted when the lease is lost; stop then. */
  signal: AbortSignal;
}

/** A grant, or its `lease_id`. */
export type LeaseProof = string | { lease_id: string };

const CONFLICT = 409;
/** Another holder has it, or the lease is over. */
const ENDED = [CONFLICT, 410];

export class Locks {
  readonly #transport: Transport;
  readonly #deadlineMs: number;
  readonly #warn: (warning: Warning) => void;

  constructor(transport: Transport, deadlineMs: number, warn: (warning: Warning) => void) {
    this.#transport = transport;
    this.#deadlineMs = deadlineMs;
    this.#warn = warn;
  }

  acquire(name: string | string[], options: LockOptions): Promise<GrantedLease | LockConflict> {
    const names = typeof name === "string" ? { key: name } : { keys: name };
    const body = { ...names, ...leaseFields(options), wait_ms: options.waitMs };
    return this.#grant("/v1/locks/acquire", body, options, options.waitMs);
  }

  hold(range: SlotRange, options: SlotOptions): Promise<GrantedLease | LockConflict> {
    const { calendar } = range;
    const calendars = typeof calendar === "string" ? { calendar } : { calendars: calendar };
    const body = {
      ...calendars,
      start: instantText(range.start),
      end: instantText(range.end),
      buffer_before_ms: range.bufferBeforeMs,
      buffer_after_ms: range.bufferAfterMs,
      ...leaseFields(options),
    };
    return this.#grant("/v1/slots/hold", body, options);
  }

  /** Null if the lease has ended or belongs to another holder. */
  async renew(
    proof: LeaseProof,
    ttlMs?: number,
    bounds?: CallBounds,
  ): Promise<RenewedLease | null> {
    const body = { lease_id: leaseId(proof), ttl_ms: ttlMs };
    return this.#unlessEnded<RenewedLease>("/v1/locks/renew", body, bounds);
  }

  /** Sent again after a lost answer, as all calls about a lease: a second one changes nothing. */
  release(proof: LeaseProof, bounds?: CallBounds): Promise<EndedLease> {
    return this.#end("/v1/locks/release", proof, bounds);
  }

  /** Null if the hold has ended and was not taken again. */
  async confirm(
    proof: LeaseProof,
    reacquireIfFree = false,
    bounds?: CallBounds,
  ): Promise<ConfirmedSlot | null> {
    const body = { lease_id: leaseId(proof), reacquire_if_free: reacquireIfFree };
    return this.#unlessEnded<ConfirmedSlot>("/v1/slots/confirm", body, bounds);
  }

  cancel(proof: LeaseProof, bounds?: CallBounds): Promise<EndedLease> {
    return this.#end("/v1/slots/cancel", proof, bounds);
  }

  async calendar(query: CalendarQuery, bounds?: CallBounds): Promise<CalendarView> {
    const parameters = new URLSearchParams({
      calendar: query.calendar,
      from: String(instantText(query.from)),
      to: String(instantText(query.to)),
    });
    if (query.tenant !== undefined) parameters.set("tenant", query.tenant);
    if (query.without !== undefined) parameters.set("without", leaseId(query.without));
    const path = `/v1/slots?${parameters}`;
    const get = { ...bounds, method: "GET", retry: true };
    return (await this.#transport.call<CalendarView>(path, get)).body;
  }

  async withLock<T>(
    name: string | string[],
    run: (held: HeldLease) => Promise<T> | T,
    options: LockOptions,
  ): Promise<T> {
    const sentAt = performance.now();
    const grant = await this.acquire(name, options);
    if (!grant.granted) throw new LockTakenError(grant);
    // The time in the queue is no part of the lease, and an answer takes no longer than a deadline.
    const { deadlineMs = this.#deadlineMs } = options;
    const grantedAt = Math.max(sentAt, performance.now() - deadlineMs);
    const keeper = this.#keep(grant, grantedAt, options);
    try {
      return await run(heldLease(grant, keeper));
    } finally {
      keeper.stop();
      await this.release(grant, { deadlineMs }).catch(this.#warnOfRelease);
    }
  }

  async withSlot<T>(
    range: SlotRange,
    run: (held: HeldLease) => Promise<T> | T,
    options: SlotOptions,
  ): Promise<T> {
    const sentAt = performance.now();
    const grant = await this.hold(range, options);
    if (!grant.granted) throw new LockTakenError(grant);
    const keeper = this.#keep(grant, sentAt, options);
    const { deadlineMs, reacquireIfFree } = options;
    let result: T;
    try {
      result = await run(heldLease(grant, keeper));
    } catch (error) {
      await this.cancel(grant, { deadlineMs }).catch(this.#warnOfRelease);
      throw error;
    } finally {
      keeper.stop();
    }
    try {
      const confirmed = await this.confirm(grant, reacquireIfFree, { deadlineMs });
      if (confirmed === null) throw new LockLostError("the hold had ended before");
    } catch (error) {
      // The function has stored its work already: an error would call it undone.
      this.#warn(unconfirmed(error));
    }
    return result;
  }

  readonly #warnOfRelease = (error: unknown): void => this.#warn(unreleased(error));

  async #grant(path: string, body: object, bounds: CallBounds, waitMs = 0) {
    const { signal, deadlineMs = this.#deadlineMs } = bounds;
    const answer = await this.#transport.call<GrantedLease | LockConflict>(path, {
      body,
      accept: [CONFLICT],
      signal,
      deadlineMs: deadlineMs + waitMs,
      retry: true,
    });
    return answer.body;
  }

  #keep(grant: GrantedLease, sentAt: number, options: LeaseOptions): LeaseKeeper {
    const { ttlMs, deadlineMs } = options;
    return new LeaseKeeper(grant.ttl_ms, sentAt, async () => {
      const renewed = await this.renew(grant, ttlMs, { deadlineMs });
      return renewed === null ? null : renewed.ttl_ms;
    });
  }

  async #end(path: string, proof: LeaseProof, bounds?: CallBounds): Promise<EndedLease> {
    const call = { ...bounds, body: { lease_id: leaseId(proof) }, retry: true };
    return (await this.#transport.call<EndedLease>(path, call)).body;
  }

  async #unlessEnded<T>(path: string, body: object, bounds?: CallBounds): Promise<T | null> {
    try {
      return (await this.#transport.call<T>(path, { ...bounds, body, retry: true })).body;
    } catch (error) {
      if (error instanceof CatracaError && ENDED.includes(error.httpStatus)) return null;
      throw error;
    }
  }
}

function heldLease(lease: GrantedLease, keeper: LeaseKeeper): HeldLease {
  return { fence: lease.fence, version: lease.version, lease, signal: keeper.signal };
}

function leaseFields(options: LeaseOptions) {
  return {
    kind: options.kind,
    tenant: options.tenant,
    ttl_ms: options.ttlMs,
    max_hold_ms: options.maxHoldMs,
    version: options.version,
    owner_label: options.ownerLabel,
    request_id: options.requestId ?? randomId(),
  };
}

/** The work is done; its lock is taken until the TTL is over. */
export function unreleased(error: unknown): Warning {
  const detail = `a lease was not ended: ${messageOf(error)}; it ends with its TTL`;
  return { code: "release-failed", detail };
}

/** The work is done; its range may be given to another caller. */
export function unconfirmed(error: unknown): Warning {
  const detail = `a range was not confirmed after its use: ${messageOf(error)}; others may get it`;
  return { code: "confirm-failed", detail };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * 128 random bits. Node 18 has no global `crypto`, and bundlers for browsers cannot resolve
 * `node:crypto`; there the id is unique, and not secret, which it need not be.
 */
function randomId(): string {
  const bytes = new Uint8Array(16);
  const { crypto } = globalThis as { crypto?: Crypto };
  if (crypto) crypto.getRandomValues(bytes);
  else bytes.forEach((_, index) => (bytes[index] = Math.random() * 256));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function leaseId(proof: LeaseProof): string {
  return typeof proof === "string" ? proof : proof.lease_id;
}

function instantText(instant: InstantLike): string | number {
  return instant instanceof Date ? instant.toISOString() : instant;
}
