/** A guard for Express 4 and 5. The client's address is `req.ip`: set Express' `trust proxy`. */
import type { GateMap, GateName } from "../types.js";
import type { GateClient } from "../guard/check-request.js";
import { checkNode, settleOnClose } from "../guard/node.js";
import type { NodeGuardOptions, NodeRequest, NodeResponse, NodeVerdict } from "../guard/node.js";

/** The part of Express' request that the guard reads. */
export type ExpressRequest = NodeRequest;

/** The part of Express' response that the guard uses. */
export interface ExpressResponse extends NodeResponse {
  locals: Record<string, any>;
  getHeader(name: string): unknown;
  setHeader(name: string, value: string): unknown;
  end(body: string): unknown;
}

/** Middleware that answers denied requests, and settles with the status of the response. */
export function guard<R extends ExpressRequest, G extends GateMap, N extends GateName<G>>(
  client: GateClient<G>,
  options: NodeGuardOptions<R, G, N>,
) {
  return async (
    request: R,
    response: ExpressResponse,
    next: (error?: unknown) => void,
  ): Promise<void> => {
    let verdict: NodeVerdict;
    try {
      const exposed = response.getHeader("Access-Control-Expose-Headers");
      verdict = await checkNode(client, request, exposed, options);
    } catch (error) {
      return next(error);
    }
    const { decision, denial, fields } = verdict;
    for (const [name, value] of Object.entries(fields)) response.setHeader(name, value);
    if (denial) {
      response.statusCode = denial.status;
      response.end(denial.body);
      return;
    }
    if (decision === null) return next();
    response.locals.catraca = decision;
    if (decision.ticket) settleOnClose(client, decision, response);
    next();
  };
}
