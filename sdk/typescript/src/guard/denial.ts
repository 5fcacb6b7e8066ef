/** The response to a denied request: status, fields and body, as the server's own to a gateway. */
import type { Decision } from "../types.js";
import { decisionFields, retryAfter } from "./fields.js";

/** The formats of `[server] denial` in the catalog. */
export type DenialFormat = "problem" | "message" | "error" | "conflict" | "empty";

/** A format, or a function that makes the JSON body. */
export type DenialOption = DenialFormat | ((decision: Decision, status: number) => unknown);

export interface Denial {
  status: number;
  fields: Record<string, string>;
  body: string;
}

const RATE_LIMITED = "Rate limit exceeded";
const JSON_TYPE = "application/json";
const REGISTRY = "https://iana.org/assignments/http-problem-types#";
const TITLES: Record<number, string> = {
  400: "Bad Request",
  403: "Forbidden",
  429: "Too Many Requests",
  503: "Service Unavailable",
};

export function makeDenial(decision: Decision, option: DenialOption = "problem"): Denial {
  const status = denialStatus(decision);
  const fields = { ...decisionFields(decision), "Cache-Control": "no-store" };
  if (option === "empty") return { status, fields, body: "" };
  const type = option === "problem" ? "application/problem+json" : JSON_TYPE;
  const value = typeof option === "function" ? option(decision, status) : bodyOf(decision, option);
  return { status, fields: { ...fields, "Content-Type": type }, body: JSON.stringify(value) };
}

export function denialStatus(decision: Decision): number {
  if (decision.reason === "blocklisted") return 403;
  if (decision.reason === "missing") return 400;
  if (decision.reason === "unavailable") return 503;
  return decision.status ?? 429;
}

function bodyOf(decision: Decision, format: DenialFormat): object {
  const wait = retryAfter(decision);
  if (format === "error") return { error: RATE_LIMITED, retryAfter: wait };
  if (format === "conflict") {
    return { error: decision.message ?? RATE_LIMITED, conflict: true, retryAfter: wait };
  }
  if (format === "message") {
    const errorMessage = decision.message ?? defaultMessage(wait);
    return { success: false, error: true, errorMessage, retryAfter: wait };
  }
  const status = denialStatus(decision);
  const violated = decision.policies.filter((row) => !row.allowed).map((row) => row.policy);
  return {
    type: REGISTRY + problemType(decision),
    title: TITLES[status] ?? null,
    status,
    detail: decision.message,
    reason: decision.reason,
    policy: decision.policy,
    "violated-policies": violated,
    retry_after: wait,
  };
}

function problemType({ reason }: Decision): string {
  if (reason === "blocked") return "abnormal-usage-detected";
  if (reason === "unavailable") return "temporary-reduced-capacity";
  return "quota-exceeded";
}

function defaultMessage(wait: number | null): string {
  if (wait === null) return "This request is not allowed.";
  return `Too many requests: try again in ${wait} s.`;
}
