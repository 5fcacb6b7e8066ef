/** Locks of a booking site: the calls that its route handlers already make. */
import type { Catraca } from "../client.js";
import { unconfirmed, unreleased } from "../locks.js";
import { pause } from "../transport.js";
import type { CalendarView, GrantedLease, LockConflict, LockCounts } from "../types.js";
import {
  appointmentKey,
  calendarName,
  parseLockKey,
  paymentKey,
  resourceKey,
} from "./lock-keys.js";

export interface LockOptions {
  /** Milliseconds; by default that of the kind in the catalog. */
  ttl?: number;
  /** Further attempts after a conflict; 0 by default. */
  retryCount?: number;
  /** Milliseconds before the second attempt; they double each time, with jitter; 100 by default. */
  retryDelay?: number;
  /** Ends the attempts, such as `AbortSignal.timeout(1_000)`; the call rejects with its reason. */
  signal?: AbortSignal;
}

export interface LockResult {
  success: boolean;
  /** Your own version when granted, else that of the holder; it is no proof of holding. */
  version: number;
  /** The fencing number, to send with every write; null on a conflict. */
  fence: number | null;
  /** Milliseconds since 1970; null if a confirmed booking has the range. */
  expiresAt: number | null;
  /** True if another holder has it. */
  conflict: boolean;
}

export interface TimeSlotAvailability {
  available: boolean;
  busy: CalendarView["busy"];
}

type LockCalls = "acquireLock" | "renewLock" | "releaseLock";
type SlotCalls = "holdSlot" | "confirmSlot" | "cancelSlot" | "calendar";
type Client = Pick<Catraca, LockCalls | SlotCalls | "request" | "reportWarning">;

const MINUTE_MS = 60_000;

export class OptimisticLockService {
  readonly #client: Client;
  /** The proofs of the locks that this object holds; a version alone frees nothing. */
  readonly #held = new Map<string, GrantedLease>();

  constructor(client: Client) {
    this.#client = client;
  }

  static generateAppointmentLockKey = appointmentKey;
  static generatePaymentLockKey = paymentKey;
  static generateResourceLockKey = resourceKey;

  /** Appointment keys lock their range of time: any overlap is a conflict. */
  async acquireLock(key: string, version: number, options: LockOptions = {}): Promise<LockResult> {
    const { retryCount = 0, retryDelay = 100, signal } = options;
    for (let attempt = 0; ; attempt += 1) {
      const grant = await this.#acquire(key, version, options);
      if (grant.granted) {
        this.#held.set(heldKey(key, version), grant);
        return granted(grant);
      }
      if (attempt >= retryCount) return refusedResult(grant);
      await pause(retryDelay * 2 ** attempt * (0.75 + Math.random() / 2), signal);
    }
  }

  /**
   * Frees the lock, and with it the time of an appointment: a booking is kept by `confirmLock`.
   * False if this object does not hold it, it has ended, or the call failed: then `onWarning` is
   * called, and the lease ends with its TTL. A handler must not fail for it after its work is done.
   */
  async releaseLock(key: string, version: number): Promise<boolean> {
    const lease = this.#held.get(heldKey(key, version));
    if (lease === undefined) return false;
    this.#held.delete(heldKey(key, version));
    try {
      const end = lease.slot ? this.#client.cancelSlot(lease) : this.#client.releaseLock(lease);
      const { outcome } = await end;
      // `already_released`: the answer to the first call was lost.
      return outcome === "released" || outcome === "already_released";
    } catch (error) {
      this.#client.reportWarning(unreleased(error));
      return false;
    }
  }

  async renewLock(
    key: string,
    version: number,
    options: Pick<LockOptions, "ttl"> = {},
  ): Promise<boolean> {
    const lease = this.#held.get(heldKey(key, version));
    if (lease === undefined) return false;
    const renewed = await this.#client.renewLock(lease, options.ttl);
    if (renewed === null) this.#held.delete(heldKey(key, version));
    return renewed !== null;
  }

  /**
   * Turns the held range of an appointment into a booking, which has no TTL. False as with
   * `releaseLock`: an appointment that was stored before stays stored.
   */
  async confirmLock(key: string, version: number): Promise<boolean> {
    const lease = this.#held.get(heldKey(key, version));
    if (lease === undefined) return false;
    this.#held.delete(heldKey(key, version));
    try {
      return (await this.#client.confirmSlot(lease)) !== null;
    } catch (error) {
      this.#client.reportWarning(unconfirmed(error));
      return false;
    }
  }

  /** Whether no other caller has any of this time. A lock of this object on it does not count. */
  async checkTimeSlotAvailability(
    tenantId: string,
    barbershopId: string,
    employeeId: string,
    startAt: Date,
    durationMinutes: number,
  ): Promise<TimeSlotAvailability> {
    const endAt = new Date(startAt.getTime() + durationMinutes * MINUTE_MS);
    const key = appointmentKey(tenantId, barbershopId, employeeId, startAt, endAt);
    const own = [...this.#held].find(([held]) => held.startsWith(`${key} `))?.[1];
    const view = await this.#client.calendar({
      calendar: calendarName(barbershopId, employeeId),
      tenant: tenantId,
      from: startAt,
      to: endAt,
      ...(own && { without: own }),
    });
    return { available: view.available, busy: view.busy };
  }

  /** Ends the leases of a tenant; needs a key of the role `admin`. */
  async clearTenantLocks(tenantId: string): Promise<number> {
    const path = `/v1/locks?tenant=${encodeURIComponent(tenantId)}`;
    return (await this.#client.request<{ cleared: number }>("DELETE", path)).cleared;
  }

  /** Needs a key of the role `admin`. */
  getLockStats(): Promise<LockCounts> {
    return this.#client.request<LockCounts>("GET", "/v1/stats/locks");
  }

  #acquire(
    key: string,
    version: number,
    { ttl, signal }: LockOptions,
  ): Promise<GrantedLease | LockConflict> {
    const target = parseLockKey(key);
    const { kind, tenant } = target;
    const options = { kind, tenant, version, ttlMs: ttl, signal };
    if (!("calendar" in target)) return this.#client.acquireLock(target.name, options);
    const { calendar, start, end } = target;
    return this.#client.holdSlot({ calendar, start, end }, options);
  }
}

/** 409 for a lock that another caller has. It never contains what would free that lock. */
export function createLockConflictResponse(refusal: LockResult | number): Response {
  const version = typeof refusal === "number" ? refusal : refusal.version;
  const fields = typeof refusal === "number" ? {} : lockFields(refusal);
  const body = { error: "another request holds this lock", conflict: true, version };
  const headers = { "Cache-Control": "no-store", "X-Lock-Version": String(version), ...fields };
  return Response.json(body, { status: 409, headers });
}

/** `X-Lock-Version`, and `X-Lock-Expires` in milliseconds since 1970. */
export function lockFields({ version, expiresAt }: LockResult): Record<string, string> {
  const fields: Record<string, string> = { "X-Lock-Version": String(version) };
  if (expiresAt !== null) fields["X-Lock-Expires"] = String(expiresAt);
  return fields;
}

function granted(lease: GrantedLease): LockResult {
  const { version, fence, expires_at } = lease;
  const expiresAt = Date.parse(expires_at);
  return { success: true, version, fence, expiresAt, conflict: false };
}

/** The result of an acquire that met another holder. */
export function refusedResult({ holder }: LockConflict): LockResult {
  const expiresAt = holder.expires_at === null ? null : Date.parse(holder.expires_at);
  return { success: false, version: holder.version, fence: null, expiresAt, conflict: true };
}

function heldKey(key: string, version: number): string {
  return `${key} ${version}`;
}
