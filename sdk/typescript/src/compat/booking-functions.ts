/**
 * The calls of a booking site as functions, over one client for the whole program: that of
 * `useCatraca`, or one of `CATRACA_URL` and `CATRACA_KEY` in the environment.
 */
import { Catraca } from "../client.js";
import { LockTakenError } from "../errors.js";
import type { AddressSource } from "../guard/address.js";
import type { HeldLease, SlotRange } from "../locks.js";
import { appointmentKey, paymentKey, resourceKey } from "./lock-keys.js";
import {
  OptimisticLockService,
  createLockConflictResponse,
  refusedResult,
} from "./optimistic-lock.js";
import type { LockOptions, LockResult, TimeSlotAvailability } from "./optimistic-lock.js";
import { RateLimitService } from "./rate-limit-service.js";
import type { Endpoint, RateLimitResult, RateLimitStats } from "./rate-limit-service.js";

export const generateAppointmentLockKey = appointmentKey;
export const generatePaymentLockKey = paymentKey;
export const generateResourceLockKey = resourceKey;

interface Services {
  catraca: Catraca;
  limits: RateLimitService;
  locks: OptimisticLockService;
}

let services: Services | undefined;

/** Lets all functions of this module use this client. Locks that they hold are forgotten. */
export function useCatraca(catraca: Catraca, address?: AddressSource): void {
  const limits = new RateLimitService(catraca, address);
  services = { catraca, limits, locks: new OptimisticLockService(catraca) };
}

/** The services of the program; made at the first call. */
export function currentServices(): Services {
  if (services === undefined) useCatraca(new Catraca());
  return services as Services;
}

/** The site's limit for one address: null when allowed. */
export function globalRateLimit(request: Request): Promise<RateLimitResult | null> {
  return currentServices().limits.globalRateLimit(request);
}

/** The limit of a shop's public pages, for one address. */
export function publicRateLimit(
  request: Request,
  tenantId: string,
  slug: string,
): Promise<RateLimitResult> {
  return currentServices().limits.publicRateLimit(request, tenantId, slug);
}

/** The limits of a sensitive endpoint: those of the site, the client and the tenant, at once. */
export function endpointRateLimit(
  request: Request,
  endpoint: Endpoint,
  tenantId: string,
): Promise<RateLimitResult> {
  return currentServices().limits.endpointRateLimit(request, endpoint, tenantId);
}

/** Verdicts of the last day; needs a key of the role `admin`. */
export function getRateLimitStats(): Promise<RateLimitStats> {
  return currentServices().limits.getRateLimitStats();
}

/** Resets every policy; needs a key of the role `admin`, and the audit records each reset. */
export function clearAllRateLimits(why?: string): Promise<void> {
  return currentServices().limits.clearAllRateLimits(why);
}

/** Appointment keys lock their range of time: any overlap is a conflict. */
export function acquireLock(
  key: string,
  version: number,
  options?: LockOptions,
): Promise<LockResult> {
  return currentServices().locks.acquireLock(key, version, options);
}

/** False if this program does not hold it, or it has ended. */
export function renewLock(
  key: string,
  version: number,
  options?: Pick<LockOptions, "ttl">,
): Promise<boolean> {
  return currentServices().locks.renewLock(key, version, options);
}

/** Frees the lock, and with it the time of an appointment; false if it had ended or that failed. */
export function releaseLock(key: string, version: number): Promise<boolean> {
  return currentServices().locks.releaseLock(key, version);
}

/** Keeps the time of an appointment after its lock: a booking, which has no TTL; false as above. */
export function confirmLock(key: string, version: number): Promise<boolean> {
  return currentServices().locks.confirmLock(key, version);
}

/** Whether no other caller has any of this time. A lock of this program on it does not count. */
export function checkTimeSlotAvailability(
  tenantId: string,
  barbershopId: string,
  employeeId: string,
  startAt: Date,
  durationMinutes: number,
): Promise<TimeSlotAvailability> {
  const { locks } = currentServices();
  return locks.checkTimeSlotAvailability(
    tenantId,
    barbershopId,
    employeeId,
    startAt,
    durationMinutes,
  );
}

/**
 * Books a range of time while `create` runs: 201 with what it returns, or 409 if the time is taken.
 * If `create` throws, the time is free again and the error goes on. What it has created is a 201 also
 * if the range cannot be confirmed then; `onWarning` of the client is called.
 */
export async function bookTimeSlot<T>(
  slot: SlotRange & { tenant?: string },
  create: (held: HeldLease) => Promise<T> | T,
): Promise<Response> {
  const options = { kind: "appointment", tenant: slot.tenant };
  try {
    const created = await currentServices().catraca.withSlot(slot, create, options);
    return Response.json(created, { status: 201 });
  } catch (error) {
    if (!(error instanceof LockTakenError)) throw error;
    return createLockConflictResponse(refusedResult(error.conflict));
  }
}
