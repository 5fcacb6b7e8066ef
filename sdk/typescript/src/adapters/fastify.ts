/** A guard for Fastify. The client's address is `request.ip`: set Fastify's `trustProxy`. */
import type { Decision, GateMap, GateName } from "../types.js";
import { checkRequest, settleStatus } from "../guard/check-request.js";
import type { GateClient, GuardOptions } from "../guard/check-request.js";
import { decisionFields } from "../guard/fields.js";

/** The part of Fastify's request that the guard reads. */
export interface FastifyRequestLike {
  ip: string;
}

/** The part of Fastify's reply that the guard uses. */
export interface FastifyReplyLike {
  statusCode: number;
  code(status: number): unknown;
  headers(values: Record<string, string>): unknown;
  send(body: string): unknown;
}

/**
 * Hooks for a route, or for the whole application with `addHook`. `onRequest` runs before the body
 * is read: use `preHandler` where the subject is in the body.
 */
export function guard<R extends FastifyRequestLike, G extends GateMap, N extends GateName<G>>(
  client: GateClient<G>,
  options: GuardOptions<R, G, N>,
) {
  const decisions = new WeakMap<R, Decision>();

  const check = async (request: R, reply: FastifyReplyLike): Promise<unknown> => {
    const { decision, denial } = await checkRequest(client, request, request.ip, options);
    if (denial) {
      reply.code(denial.status);
      reply.headers(denial.fields);
      return reply.send(denial.body);
    }
    if (decision) {
      decisions.set(request, decision);
      reply.headers(decisionFields(decision));
    }
    return undefined;
  };

  const onResponse = async (request: R, reply: FastifyReplyLike): Promise<void> => {
    await settleStatus(client, decisions.get(request) ?? null, reply.statusCode);
  };

  return {
    /** For `app.post("/login", guard(…).route, handler)`. */
    route: { onRequest: check, onResponse },
    /** The same before the handler, when the body has been read. */
    routeWithBody: { preHandler: check, onResponse },
    check,
    onResponse,
  };
}
