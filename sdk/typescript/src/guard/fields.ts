/** The HTTP fields of a decision: `RateLimit-Policy`, `RateLimit`, `Retry-After`. */
import type { Decision, DecisionRow } from "../types.js";

/** The largest integer of a structured field (RFC 9651). */
const INTEGER_MAX = 999_999_999_999_999;

/** What a browser must be allowed to read of another origin's response. */
export const EXPOSED_FIELDS = "Retry-After, RateLimit, RateLimit-Policy";

/** One quota of a row: its limit, or one of its windows. */
interface QuotaItem {
  name: string;
  limit: number | null;
  window_ms?: number | null;
  remaining: number | null;
  retry_after_ms: number | null;
  reset_after_ms: number | null;
}

/** The fields of a response, allowed or denied; empty if nothing is counted. */
export function decisionFields(decision: Decision): Record<string, string> {
  const fields: Record<string, string> = {};
  const rows = decision.policies.filter((row) => row.mode === "enforce");
  // When a block without a limit denies, rows with room are left out: a client that reads `r > 0`
  // would retry at once.
  const limited = rows.filter((row) => decision.allowed || decision.limit !== null || !row.allowed);
  const policies = rows.flatMap(quotaItems).map(policyItem).join(", ");
  const limits = limited.flatMap(quotaItems).map(limitItem).join(", ");
  if (policies) fields["RateLimit-Policy"] = policies;
  if (limits) fields.RateLimit = limits;
  const wait = retryAfter(decision);
  if (wait !== null) fields["Retry-After"] = String(wait);
  if (decision.degraded) fields["Catraca-Degraded"] = "?1";
  return fields;
}

/** Whole seconds, rounded up, at least one; null when allowed, or when waiting never helps. */
export function retryAfter(decision: Decision): number | null {
  if (decision.allowed || decision.retry_after_ms === null) return null;
  return seconds(decision.retry_after_ms);
}

/** The older fields; `X-RateLimit-Reset` is in seconds since 1970. */
export function xRateLimitFields(decision: Decision, now = Date.now()): Record<string, string> {
  const { limit, remaining, reset_after_ms } = decision;
  if (limit === null || remaining === null) return {};
  const fields: Record<string, string> = {
    "X-RateLimit-Limit": String(limit),
    "X-RateLimit-Remaining": String(remaining),
  };
  if (reset_after_ms !== null) {
    fields["X-RateLimit-Reset"] = String(Math.ceil((now + reset_after_ms) / 1000));
  }
  return fields;
}

/** The quotas of a row; none if nothing is counted. Names of several windows have their lengths. */
function quotaItems(row: DecisionRow): QuotaItem[] {
  if (row.limit === null) return [];
  const name = row.attribute ? `${row.policy}:${row.attribute}` : row.policy;
  if (!row.windows?.length) return [{ ...row, name }];
  return row.windows.map((item) => ({ ...item, name: `${name}:${lengthText(item.window_ms)}` }));
}

function policyItem({ name, limit, window_ms }: QuotaItem): string {
  const window = window_ms && window_ms >= 1000 ? `;w=${seconds(window_ms)}` : "";
  return `"${name}";q=${clamp(limit)}${window}`;
}

function limitItem({ name, remaining, retry_after_ms, reset_after_ms }: QuotaItem): string {
  const wait = retry_after_ms ?? reset_after_ms;
  return `"${name}";r=${clamp(remaining)}${wait ? `;t=${seconds(wait)}` : ""}`;
}

function lengthText(ms: number): string {
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}

function seconds(ms: number): number {
  return clamp(Math.max(Math.ceil(ms / 1000), 1));
}

function clamp(value: number | null): number {
  return Math.min(Math.max(value ?? 0, 0), INTEGER_MAX);
}
