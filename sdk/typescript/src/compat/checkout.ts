/**
 * Helpers of a checkout with named limits, over presets/checkout: the shapes that its edge
 * functions already call. Such functions let requests pass while the store of their limits is
 * unavailable, so these helpers do too, unless the client has an `onFailure`.
 */
import type { Catraca } from "../client.js";
import { clientAddress } from "../guard/address.js";
import type { AddressSource } from "../guard/address.js";
import { makeDenial } from "../guard/denial.js";
import { retryAfter } from "../guard/fields.js";
import { denialResponse } from "../guard/web.js";
import type { Decision } from "../types.js";
import type { RateLimitConfig } from "./rate-limit-config.js";

export { RATE_LIMIT_CONFIGS } from "../generated/checkout-configs.js";
export { addToBlocklist, listBlocklist, removeFromBlocklist } from "./blocklist.js";
export type { BlocklistEntry } from "./blocklist.js";
export { rateLimitConfig } from "./rate-limit-config.js";
export type { RateLimitConfig } from "./rate-limit-config.js";

export interface RateLimitResult {
  allowed: boolean;
  /** Whole seconds; null when allowed, or when waiting does not help. */
  retryAfter: number | null;
  remaining: number | null;
  decision: Decision;
}

type Client = Pick<Catraca, "check" | "onFailure">;

/** Blocklist and limits: null, or the response to return. */
export async function rateLimitMiddleware(
  client: Client,
  request: Request,
  config: RateLimitConfig,
  corsHeaders: HeadersInit = {},
  address?: AddressSource,
): Promise<Response | null> {
  const ip = getClientIP(request, address);
  const decision = await check(client, config, ip);
  return denied(decision, corsHeaders);
}

/** Limits without the blocklist and the allowlist: null, or the response to return. */
export async function rateLimitOnlyMiddleware(
  client: Client,
  request: Request,
  config: RateLimitConfig,
  corsHeaders: HeadersInit = {},
  address?: AddressSource,
): Promise<Response | null> {
  const ip = getClientIP(request, address);
  const decision = await check(client, config, ip, false);
  return denied(decision, corsHeaders);
}

/** The check alone, for a handler that makes its own response. */
export async function checkRateLimit(
  client: Client,
  identifier: string | undefined,
  config: RateLimitConfig,
): Promise<RateLimitResult> {
  const decision = await check(client, config, identifier);
  const { allowed, remaining } = decision;
  return { allowed, retryAfter: retryAfter(decision), remaining, decision };
}

/** The response to a denied check. */
export function createRateLimitResponse(
  result: RateLimitResult,
  corsHeaders: HeadersInit = {},
): Response {
  return denialResponse(makeDenial(result.decision, "error"), corsHeaders);
}

/** The client's address: the entry of `X-Forwarded-For` that the last trusted proxy wrote. */
export function getClientIP(request: Request, address?: AddressSource): string | undefined {
  return clientAddress(request.headers, address);
}

function check(
  client: Client,
  config: RateLimitConfig,
  ip: string | undefined,
  lists = true,
): Promise<Decision> {
  const onFailure = client.onFailure ?? "open";
  return client.check(config.action, { ip }, { lists, onFailure });
}

function denied(decision: Decision, cors: HeadersInit): Response | null {
  return decision.allowed ? null : denialResponse(makeDenial(decision, "error"), cors);
}
