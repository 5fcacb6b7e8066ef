/** Limits of a booking site: the calls that its middleware already makes. */
import type { Catraca } from "../client.js";
import { clientAddress } from "../guard/address.js";
import type { AddressSource } from "../guard/address.js";
import { makeDenial } from "../guard/denial.js";
import { retryAfter, xRateLimitFields } from "../guard/fields.js";
import { denialResponse, withFields } from "../guard/web.js";
import type { Decision, PolicyList, PolicyStats } from "../types.js";

export type Endpoint = "LOGIN" | "APPOINTMENTS" | "PAYMENTS";

export interface RateLimitResult {
  /** True if the request is denied. */
  conflict: boolean;
  limit: number | null;
  remaining: number | null;
  /** Whole seconds; null when allowed. */
  retryAfter: number | null;
  decision: Decision;
}

export interface RateLimitCounts {
  total: number;
  limited: number;
  success: number;
}

export interface RateLimitStats {
  global: RateLimitCounts;
  public: RateLimitCounts;
  endpoints: Record<string, RateLimitCounts>;
}

type Client = Pick<Catraca, "check" | "request" | "onFailure">;

export class RateLimitService {
  readonly #client: Client;
  readonly #address: AddressSource | undefined;

  constructor(client: Client, address?: AddressSource) {
    this.#client = client;
    this.#address = address;
  }

  /** The site's limit for one address: null when allowed. */
  async globalRateLimit(request: Request): Promise<RateLimitResult | null> {
    const result = await this.#check("global", { ip: this.#ip(request) });
    return result.conflict ? result : null;
  }

  /** The limit of a shop's public pages, for one address. */
  publicRateLimit(request: Request, tenantId: string, slug: string): Promise<RateLimitResult> {
    return this.#check("public", { ip: this.#ip(request), tenant: tenantId, slug });
  }

  /** The limits of a sensitive endpoint: site, client, address and tenant, at once. */
  endpointRateLimit(
    request: Request,
    endpoint: Endpoint,
    tenantId: string,
  ): Promise<RateLimitResult> {
    const gate = endpoint.toLowerCase();
    return this.#check(gate, { ip: this.#ip(request), tenant: tenantId });
  }

  /** Verdicts of the last day; needs a key of the role `admin`. */
  async getRateLimitStats(): Promise<RateLimitStats> {
    const stats = await this.#client.request<PolicyStats>("GET", "/v1/stats");
    const rows = new Map(stats.policies.map((row) => [row.policy, row]));
    const counts = (policy: string): RateLimitCounts => {
      const row = rows.get(policy);
      const total = row?.total ?? 0;
      const success = row?.allowed ?? 0;
      return { total, limited: total - success, success };
    };
    const endpoints = {
      LOGIN: counts("login_client"),
      APPOINTMENTS: counts("appointments_client"),
      PAYMENTS: counts("payments_client"),
    };
    return { global: counts("global"), public: counts("public"), endpoints };
  }

  /** Resets every policy; needs a key of the role `admin`, and the audit records each reset. */
  async clearAllRateLimits(why = "clearAllRateLimits"): Promise<void> {
    const { policies } = await this.#client.request<PolicyList>("GET", "/v1/policies");
    for (const { policy } of policies) {
      await this.#client.request("POST", "/v1/reset", { policy, confirm: policy, why });
    }
  }

  async #check(gate: string, subject: Record<string, string | undefined>) {
    const onFailure = this.#client.onFailure ?? "open";
    const decision = await this.#client.check(gate, subject, { onFailure });
    const { allowed, limit, remaining } = decision;
    return { conflict: !allowed, limit, remaining, retryAfter: retryAfter(decision), decision };
  }

  #ip(request: Request): string | undefined {
    return clientAddress(request.headers, this.#address);
  }
}

/** The response to a violated limit. */
export function createRateLimitResponse(result: RateLimitResult): Response {
  const response = denialResponse(makeDenial(result.decision, "conflict"));
  return withFields(response, xRateLimitFields(result.decision));
}
