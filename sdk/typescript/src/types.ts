/** The bodies of the HTTP API under short names, and the types of gates. */
import type { components } from "./generated/api.js";

type Schemas = components["schemas"];

export type Decision = Schemas["Decision"];
export type DecisionRow = Schemas["DecisionRow"];
export type Reason = Schemas["Reason"];
export type Outcome = Schemas["Outcome"];
export type Settlement = Schemas["Settlement"];
export type CreditOutcome = Schemas["CreditOutcome"];
export type GrantedLease = Schemas["GrantedLease"] & { granted: true };
export type LockConflict = Schemas["LockConflict"] & { granted: false };
export type RenewedLease = Schemas["RenewedLease"];
export type EndedLease = Schemas["EndedLease"];
export type ConfirmedSlot = Schemas["ConfirmedSlot"];
export type CalendarView = Schemas["CalendarView"];
export type Problem = Schemas["Problem"];
export type Whoami = Schemas["Whoami"];
export type CatalogSummary = Schemas["CatalogSummary"];
export type PolicyList = Schemas["PolicyList"];
export type PolicyStats = Schemas["PolicyStats"];
export type LockCounts = Schemas["LockCounts"];
export type ListPage = Schemas["ListPage"];
export type AddedEntries = Schemas["AddedEntries"];

/** The attributes of a caller. Attributes that are `undefined` are not sent. */
export type Subject = { [attribute: string]: string | number | undefined };

/**
 * Gates and the attributes that their policies read, as `catraca types --lang ts` prints them for a
 * catalog. Without one, every name is accepted.
 */
export type GateMap = { [gate: string]: Subject };

/** The name of a gate. */
export type GateName<G extends GateMap> = keyof G & string;

/**
 * What becomes of a check that Catraca does not answer: `error` rejects with `UnavailableError`,
 * `open` allows, `closed` denies.
 */
export type FailureMode = "error" | "open" | "closed";

/** An instant: a `Date`, RFC 3339 with a zone, or milliseconds since 1970. */
export type InstantLike = Date | string | number;
