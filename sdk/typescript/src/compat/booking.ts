/**
 * Limits and locks of a booking site, over presets/booking: the calls that its middleware and its
 * routes already make. Such a middleware lets requests pass while its store is unavailable, so
 * these calls do too, unless the client has an `onFailure`.
 */
export {
  acquireLock,
  bookTimeSlot,
  checkTimeSlotAvailability,
  clearAllRateLimits,
  confirmLock,
  endpointRateLimit,
  generateAppointmentLockKey,
  generatePaymentLockKey,
  generateResourceLockKey,
  getRateLimitStats,
  globalRateLimit,
  publicRateLimit,
  releaseLock,
  renewLock,
  useCatraca,
} from "./booking-functions.js";
export { gateOfPath, rateLimitProxy } from "./booking-proxy.js";
export type { RateLimitProxyOptions } from "./booking-proxy.js";
export {
  OptimisticLockService,
  createLockConflictResponse,
  lockFields,
} from "./optimistic-lock.js";
export type { LockOptions, LockResult, TimeSlotAvailability } from "./optimistic-lock.js";
export { RateLimitService, createRateLimitResponse } from "./rate-limit-service.js";
export type {
  Endpoint,
  RateLimitCounts,
  RateLimitResult,
  RateLimitStats,
} from "./rate-limit-service.js";
