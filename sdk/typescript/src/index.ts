/** The client of Catraca, without any framework. */
export { Catraca } from "./client.js";
export type { CheckOptions, PeekOptions, SettleTarget } from "./client.js";
export { CatracaError, LockLostError, LockTakenError, UnavailableError } from "./errors.js";
export type {
  CalendarQuery,
  HeldLease,
  LeaseProof,
  LockOptions,
  SlotOptions,
  SlotRange,
} from "./locks.js";
export type { BlockCacheOptions, ClientOptions, Warning } from "./settings.js";
export type { CallBounds } from "./transport.js";
export type {
  CalendarView,
  ConfirmedSlot,
  CreditOutcome,
  Decision,
  DecisionRow,
  EndedLease,
  FailureMode,
  GateMap,
  GateName,
  GrantedLease,
  InstantLike,
  LockConflict,
  Outcome,
  Problem,
  Reason,
  RenewedLease,
  Settlement,
  Subject,
} from "./types.js";
export { VERSION } from "./version.js";
