/** Locks and slots: the calls, and functions that run while a lease is held. */
import { CatracaError, LockLostError, LockTakenError } from "./errors.js";
import { LeaseKeeper } from "./lease-keeper.js";
import type { Transport } from "./transport.js";
import type {
  CalendarView,
  ConfirmedSlot,
  EndedLease,
  GrantedLease,
  InstantLike,
  LockConflict,
  RenewedLease,
} from "./types.js";

export interface LeaseOptions {
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
  signal?: AbortSignal | undefined;
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

  constructor(transport: Transport, deadlineMs: number) {
    this.#transport = transport;
    this.#deadlineMs = deadlineMs;
  }

  acquire(name: string | string[], options: LockOptions): Promise<GrantedLease | LockConflict> {
    const names = typeof name === "string" ? { key: name } : { keys: name };
    const body = { ...names, ...leaseFields(options), wait_ms: options.waitMs };
    return this.#grant("/v1/locks/acquire", body, options.signal, options.waitMs);
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
    return this.#grant("/v1/slots/hold", body, options.signal);
  }

  /** Null if the lease has ended or belongs to another holder. */
  async renew(proof: LeaseProof, ttlMs?: number): Promise<RenewedLease | null> {
    const body = { lease_id: leaseId(proof), ttl_ms: ttlMs };
    return this.#unlessEnded<RenewedLease>("/v1/locks/renew", body);
  }

  /** Sent again after a lost answer, as all calls about a lease: a second one changes nothing. */
  release(proof: LeaseProof): Promise<EndedLease> {
    return this.#end("/v1/locks/release", proof);
  }

  /** Null if the hold has ended and was not taken again. */
  async confirm(proof: LeaseProof, reacquireIfFree = false): Promise<ConfirmedSlot | null> {
    const body = { lease_id: leaseId(proof), reacquire_if_free: reacquireIfFree };
    return this.#unlessEnded<ConfirmedSlot>("/v1/slots/confirm", body);
  }

  cancel(proof: LeaseProof): Promise<EndedLease> {
    return this.#end("/v1/slots/cancel", proof);
  }

  async calendar(query: CalendarQuery): Promise<CalendarView> {
    const parameters = new URLSearchParams({
      calendar: query.calendar,
      from: String(instantText(query.from)),
      to: String(instantText(query.to)),
    });
    if (query.tenant !== undefined) parameters.set("tenant", query.tenant);
    if (query.without !== undefined) parameters.set("without", leaseId(query.without));
    const path = `/v1/slots?${parameters}`;
    return (await this.#transport.call<CalendarView>(path, { method: "GET", retry: true })).body;
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
    const grantedAt = Math.max(sentAt, performance.now() - this.#deadlineMs);
    const keeper = this.#keep(grant, grantedAt, options.ttlMs);
    try {
      return await run(heldLease(grant, keeper));
    } finally {
      keeper.stop();
      // A release that fails changes nothing for the caller: the lease ends with its TTL.
      await this.release(grant).catch(() => {});
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
    const keeper = this.#keep(grant, sentAt, options.ttlMs);
    let result: T;
    try {
      result = await run(heldLease(grant, keeper));
    } catch (error) {
      await this.cancel(grant).catch(() => {});
      throw error;
    } finally {
      keeper.stop();
    }
    const confirmed = await this.confirm(grant, options.reacquireIfFree);
    if (confirmed === null) throw new LockLostError("the hold had ended before it was confirmed");
    return result;
  }

  async #grant(path: string, body: object, signal?: AbortSignal, waitMs = 0) {
    const answer = await this.#transport.call<GrantedLease | LockConflict>(path, {
      body,
      accept: [CONFLICT],
      signal,
      deadlineMs: this.#deadlineMs + waitMs,
      retry: "request_id" in body && body.request_id !== undefined,
    });
    return answer.body;
  }

  #keep(grant: GrantedLease, sentAt: number, ttlMs?: number): LeaseKeeper {
    return new LeaseKeeper(grant.ttl_ms, sentAt, async () => {
      const renewed = await this.renew(grant, ttlMs);
      return renewed === null ? null : renewed.ttl_ms;
    });
  }

  async #end(path: string, proof: LeaseProof): Promise<EndedLease> {
    const call = { body: { lease_id: leaseId(proof) }, retry: true };
    return (await this.#transport.call<EndedLease>(path, call)).body;
  }

  async #unlessEnded<T>(path: string, body: object): Promise<T | null> {
    try {
      return (await this.#transport.call<T>(path, { body, retry: true })).body;
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

/** Undefined where there is no source of random numbers (Node 18); such a call is not retried. */
function randomId(): string | undefined {
  const bytes = globalThis.crypto?.getRandomValues(new Uint8Array(16));
  return bytes && Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function leaseId(proof: LeaseProof): string {
  return typeof proof === "string" ? proof : proof.lease_id;
}

function instantText(instant: InstantLike): string | number {
  return instant instanceof Date ? instant.toISOString() : instant;
}
