/** What the guards for Node's frameworks share: CORS, and the settle at the end of a response. */
import type { Decision, GateMap, GateName } from "../types.js";
import { UNGATED, checkRequest, settleStatus } from "./check-request.js";
import type { GateClient, GuardOptions, Verdict } from "./check-request.js";
import { EXPOSED_FIELDS, decisionFields } from "./fields.js";

const EXPOSE = "access-control-expose-headers";

/** The part of a request that these guards read. */
export interface NodeRequest {
  ip?: string | undefined;
  method?: string | undefined;
  headers?: Record<string, string | string[] | undefined>;
}

/** The part of Node's response that these guards read. */
export interface NodeResponse {
  statusCode: number;
  readonly headersSent: boolean;
  readonly destroyed?: boolean;
  on(event: "close", listener: () => void): unknown;
}

export interface NodeGuardOptions<R, G extends GateMap, N extends GateName<G>>
  extends GuardOptions<R, G, N> {
  /**
   * The CORS headers of your responses, so that a page of another origin can read denials and the
   * RateLimit fields; empty if a CORS middleware runs before the guard. Preflights are not counted.
   */
  cors?: HeadersInit | ((request: R) => HeadersInit);
}

export interface NodeVerdict extends Verdict {
  /** The fields of the response, allowed or denied. */
  fields: Record<string, string>;
}

/** Decides about a request; `exposed` is the `Access-Control-Expose-Headers` of its response. */
export async function checkNode<R extends NodeRequest, G extends GateMap, N extends GateName<G>>(
  client: GateClient<G>,
  request: R,
  exposed: unknown,
  options: NodeGuardOptions<R, G, N>,
): Promise<NodeVerdict> {
  const { cors } = options;
  // A browser asks by itself before it sends the real request; that one is counted.
  const isPreflight =
    request.method === "OPTIONS" && request.headers?.["access-control-request-method"];
  const verdict =
    cors && isPreflight ? UNGATED : await checkRequest(client, request, request.ip, options);
  const { decision, denial } = verdict;
  if (!decision && !denial) return { ...verdict, fields: {} };
  const fields = new Headers(cors && denial ? readCors(cors, request) : {});
  if (cors) {
    if (exposed) fields.append(EXPOSE, String(exposed));
    fields.append(EXPOSE, EXPOSED_FIELDS);
  }
  const own = denial ? denial.fields : decision ? decisionFields(decision) : {};
  return { ...verdict, fields: { ...Object.fromEntries(fields), ...own } };
}

/**
 * Settles once, when the response has been sent or its client has left: then without a status, if
 * there was none yet. A client may have left while the check was under way.
 */
export function settleOnClose<G extends GateMap>(
  client: GateClient<G>,
  decision: Decision,
  response: NodeResponse,
): void {
  const settle = () => {
    const status = response.headersSent ? response.statusCode : undefined;
    void settleStatus(client, decision, status);
  };
  if (response.destroyed) settle();
  else response.on("close", settle);
}

function readCors<R>(cors: HeadersInit | ((request: R) => HeadersInit), request: R): HeadersInit {
  return typeof cors === "function" ? cors(request) : cors;
}
