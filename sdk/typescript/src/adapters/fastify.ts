/** A guard for Fastify. The client's address is `request.ip`: set Fastify's `trustProxy`. */
import type { GateMap, GateName } from "../types.js";
import type { GateClient } from "../guard/check-request.js";
import { checkNode, settleOnClose } from "../guard/node.js";
import type { NodeGuardOptions, NodeRequest, NodeResponse } from "../guard/node.js";

/** The part of Fastify's request that the guard reads. */
export interface FastifyRequestLike extends NodeRequest {
  ip: string;
}

/** The part of Fastify's reply that the guard uses. */
export interface FastifyReplyLike {
  /** Node's own response: its `close` comes also when the client leaves, unlike `onResponse`. */
  raw: NodeResponse;
  code(status: number): unknown;
  getHeader(name: string): unknown;
  headers(values: Record<string, string>): unknown;
  send(body: string): unknown;
}

/**
 * Hooks for a route, or `check` for the whole application with `addHook`. `onRequest` runs before
 * the body is read: use `preHandler` where the subject is in the body.
 */
export function guard<R extends FastifyRequestLike, G extends GateMap, N extends GateName<G>>(
  client: GateClient<G>,
  options: NodeGuardOptions<R, G, N>,
) {
  const check = async (request: R, reply: FastifyReplyLike): Promise<unknown> => {
    const exposed = reply.getHeader("access-control-expose-headers");
    const { decision, denial, fields } = await checkNode(client, request, exposed, options);
    reply.headers(fields);
    if (denial) {
      reply.code(denial.status);
      return reply.send(denial.body);
    }
    if (decision?.ticket) settleOnClose(client, decision, reply.raw);
    return undefined;
  };

  return {
    /** For `app.post("/login", guard(…).route, handler)`. */
    route: { onRequest: check },
    /** The same before the handler, when the body has been read. */
    routeWithBody: { preHandler: check },
    check,
  };
}
