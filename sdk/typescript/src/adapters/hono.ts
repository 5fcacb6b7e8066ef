/** A guard for Hono. */
import type { GateMap, GateName } from "../types.js";
import { clientAddress } from "../guard/address.js";
import type { AddressSource } from "../guard/address.js";
import { checkRequest, settleStatus } from "../guard/check-request.js";
import type { GateClient, GuardOptions } from "../guard/check-request.js";
import { decisionFields } from "../guard/fields.js";
import { denialResponse, isPreflight } from "../guard/web.js";

/** The part of Hono's context that the guard uses. */
export interface HonoContext {
  req: { raw: Request };
  res: Response;
  /** On Workers; elsewhere Hono has none, and throws when it is read. */
  readonly executionCtx?: { waitUntil(work: Promise<unknown>): void };
  header(name: string, value: string): unknown;
}

export interface HonoGuardOptions<C extends HonoContext, G extends GateMap, N extends GateName<G>>
  extends GuardOptions<C, G, N> {
  /**
   * The CORS headers of your responses, if no CORS middleware runs before the guard. Preflights are
   * then not counted.
   */
  cors?: HeadersInit;
  /** Where the client's address is; on Node, pass `(c) => getConnInfo(c).remote.address`. */
  address?: AddressSource | ((context: C) => string | undefined);
}

/** Middleware that answers denied requests, and settles with the status of the response. */
export function guard<C extends HonoContext, G extends GateMap, N extends GateName<G>>(
  client: GateClient<G>,
  options: HonoGuardOptions<C, G, N>,
) {
  return async (context: C, next: () => Promise<void>): Promise<Response | void> => {
    const { address, cors } = options;
    const { raw } = context.req;
    if (cors && isPreflight(raw)) return next();
    const { headers } = raw;
    const ip = typeof address === "function" ? address(context) : clientAddress(headers, address);
    const { decision, denial } = await checkRequest(client, context, ip, options);
    if (denial) return denialResponse(denial, cors);
    const fields = decision === null ? {} : decisionFields(decision);
    for (const [name, value] of Object.entries(fields)) context.header(name, value);
    // Hono turns an error of the handler into a response before this continues.
    await next();
    const settled = settleStatus(client, decision, context.res.status);
    try {
      // Workers end a request with its response, unless they know of work that is left.
      context.executionCtx?.waitUntil(settled);
    } catch {}
  };
}
