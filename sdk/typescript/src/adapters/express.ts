/** A guard for Express 4 and 5. The client's address is `req.ip`: set Express' `trust proxy`. */
import type { Decision, GateMap, GateName } from "../types.js";
import { checkRequest, settleStatus } from "../guard/check-request.js";
import type { GateClient, GuardOptions, Verdict } from "../guard/check-request.js";
import type { Denial } from "../guard/denial.js";
import { decisionFields } from "../guard/fields.js";

/** The part of Express' request that the guard reads. */
export interface ExpressRequest {
  ip?: string | undefined;
}

/** The part of Express' response that the guard uses. */
export interface ExpressResponse {
  statusCode: number;
  readonly headersSent: boolean;
  locals: Record<string, any>;
  setHeader(name: string, value: string): unknown;
  end(body: string): unknown;
  on(event: "close", listener: () => void): unknown;
}

/** Middleware that answers denied requests, and settles with the status of the response. */
export function guard<R extends ExpressRequest, G extends GateMap, N extends GateName<G>>(
  client: GateClient<G>,
  options: GuardOptions<R, G, N>,
) {
  return async (
    request: R,
    response: ExpressResponse,
    next: (error?: unknown) => void,
  ): Promise<void> => {
    let verdict: Verdict;
    try {
      verdict = await checkRequest(client, request, request.ip, options);
    } catch (error) {
      return next(error);
    }
    const { decision, denial } = verdict;
    if (denial) return deny(response, denial);
    if (decision === null) return next();
    setFields(response, decisionFields(decision));
    response.locals.catraca = decision;
    if (decision.ticket) settleOnClose(client, decision, response);
    next();
  };
}

function deny(response: ExpressResponse, denial: Denial): void {
  response.statusCode = denial.status;
  setFields(response, denial.fields);
  response.end(denial.body);
}

function setFields(response: ExpressResponse, fields: Record<string, string>): void {
  for (const [name, value] of Object.entries(fields)) response.setHeader(name, value);
}

/** Also when the client has gone: without a status, but the check is over. */
function settleOnClose<G extends GateMap>(
  client: GateClient<G>,
  decision: Decision,
  response: ExpressResponse,
): void {
  response.on("close", () => {
    const status = response.headersSent ? response.statusCode : undefined;
    void settleStatus(client, decision, status);
  });
}
