/** What can go wrong with a call. A denial is a decision and never an error. */
import type { Denial } from "./guard/denial.js";
import type { LockConflict, Problem } from "./types.js";

/** The server refused the call: the request, the key or the gate is wrong. */
export class CatracaError extends Error {
  override readonly name: string = "CatracaError";
  /**
   * The status of Catraca's answer. Not `status`: Express would answer its own client with it, and
   * a wrong key here is no 401 there.
   */
  readonly httpStatus: number;
  /** The code of the problem, such as `unknown-gate`; docs/errors.md explains each. */
  readonly code: string;

  constructor(status: number, problem: Partial<Problem>) {
    const code = problem.code ?? "unknown";
    super(`${code}: ${problem.detail ?? `the server answered ${status}`}`);
    this.httpStatus = status;
    this.code = code;
  }
}

const UNCHECKED: Denial = {
  status: 503,
  fields: {
    "Retry-After": "1",
    "Cache-Control": "no-store",
    "Content-Type": "application/problem+json",
  },
  body: JSON.stringify({
    title: "Service Unavailable",
    status: 503,
    code: "limiter-failed",
    reason: "unavailable",
    // Without the cause: it may name servers, which are not for clients.
    detail: "the request was not checked: the rate limiter did not answer",
  }),
};

/** No usable answer within the deadline: connection refused, timeout, a 5xx, 408 or 429. */
export class UnavailableError extends Error {
  override readonly name: string = "UnavailableError";
  /** The status of Catraca's answer, if there was one. */
  readonly httpStatus: number | undefined;
  /** The response of a guard to a request that was not checked. */
  readonly denial: Denial = UNCHECKED;

  constructor(detail: string, status?: number, cause?: unknown) {
    super(`catraca is unavailable: ${detail}`, { cause });
    this.httpStatus = status;
  }
}

/** `withLock` and `withSlot`: another caller holds the name or the range. */
export class LockTakenError extends Error {
  override readonly name: string = "LockTakenError";
  readonly conflict: LockConflict;

  constructor(conflict: LockConflict) {
    super(conflict.error);
    this.conflict = conflict;
  }
}

/** The lease ended while it was in use; it is the reason of the aborted signal. */
export class LockLostError extends Error {
  override readonly name: string = "LockLostError";
}
