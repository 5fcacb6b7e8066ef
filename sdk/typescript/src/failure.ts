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
