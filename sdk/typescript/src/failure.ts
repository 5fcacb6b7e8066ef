/** The decision of the failure mode, while Catraca does not answer. */
import type { Decision, FailureMode } from "./types.js";

export function decideByFailureMode(mode: Exclude<FailureMode, "error">): Decision {
  return {
    allowed: mode === "open",
    reason: "unavailable",
    policy: null,
    limit: null,
    remaining: null,
    reset_after_ms: null,
    retry_after_ms: null,
    blocked_until: null,
    mode: "enforce",
    degraded: true,
    revision: "",
    message: null,
    ticket: null,
    policies: [],
  };
}

/** The start and the end of an outage, as one line each on the console. */
export class OutageLog {
  #isOngoing = false;

  onFailure(error: Error): void {
    if (!this.#isOngoing) {
      console.warn(`catraca: ${error.message}; checks follow onFailure until it answers`);
    }
    this.#isOngoing = true;
  }

  onAnswer(): void {
    if (this.#isOngoing) console.warn("catraca: the server answers checks again");
    this.#isOngoing = false;
  }
}
