/** What the guards for Node's frameworks share: CORS, which a page of another origin needs. */
import type { GateMap, GateName } from "../types.js";
import { UNGATED, checkRequest } from "./check-request.js";
import type { GateClient, GuardOptions, Verdict } from "./check-request.js";
import { EXPOSED_FIELDS, decisionFields } from "./fields.js";

const EXPOSE = "access-control-expose-headers";

/** The part of a request that these guards read. */
export interface NodeRequest {
  ip?: string | undefined;
  method?: string | undefined;
  headers?: Record<string, string | string[] | undefined>;
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

function readCors<R>(cors: HeadersInit | ((request: R) => HeadersInit), request: R): HeadersInit {
  return typeof cors === "function" ? cors(request) : cors;
}
