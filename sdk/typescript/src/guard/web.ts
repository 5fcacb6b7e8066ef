/** Guards for everything that has a `Request` and answers with a `Response`. */
import type { Decision, GateMap, GateName } from "../types.js";
import { clientAddress } from "./address.js";
import type { AddressSource } from "./address.js";
import { UNGATED, checkRequest, settleStatus } from "./check-request.js";
import type { GateClient, GuardOptions, Verdict } from "./check-request.js";
import type { Denial } from "./denial.js";
import { EXPOSED_FIELDS, decisionFields } from "./fields.js";

export interface WebGuardOptions<
  R extends Request,
  A extends unknown[],
  G extends GateMap,
  N extends GateName<G>,
> extends GuardOptions<R, G, N> {
  /** The CORS headers of your responses, so that a page of another origin can read a denial. */
  cors?: HeadersInit | ((request: R) => HeadersInit);
  /** Where the client's address is; the last entry of `X-Forwarded-For` by default. */
  address?: AddressSource | ((request: R, ...rest: A) => string | undefined);
  /** Keeps the function alive until a settle is sent, such as `EdgeRuntime.waitUntil`. */
  waitUntil?: (work: Promise<unknown>) => void;
}

/** Null if the request may pass, else the response to send. */
export async function guard<
  R extends Request,
  A extends unknown[],
  G extends GateMap,
  N extends GateName<G>,
>(
  client: GateClient<G>,
  request: R,
  options: WebGuardOptions<R, A, G, N>,
  ...rest: A
): Promise<Response | null> {
  const { denial } = await decideWeb(client, request, options, rest);
  return denial && denyWeb(denial, request, options);
}

/** A handler behind a gate: denials never reach it, and its status settles the check. */
export function guarded<
  R extends Request,
  A extends unknown[],
  G extends GateMap,
  N extends GateName<G>,
>(
  client: GateClient<G>,
  options: WebGuardOptions<R, A, G, N>,
  handler: (request: R, ...rest: A) => Response | Promise<Response>,
): (request: R, ...rest: A) => Promise<Response> {
  const settle = (decision: Decision | null, status: number) => {
    const work = settleStatus(client, decision, status);
    options.waitUntil?.(work);
  };
  return async (request, ...rest) => {
    const { decision, denial } = await decideWeb(client, request, options, rest);
    if (denial) return denyWeb(denial, request, options);
    try {
      const response = await handler(request, ...rest);
      settle(decision, response.status);
      return decision === null ? response : withFields(response, decisionFields(decision));
    } catch (error) {
      settle(decision, 500);
      throw error;
    }
  };
}

export function denialResponse({ status, fields, body }: Denial, cors?: HeadersInit): Response {
  const headers = setFields(new Headers(cors), fields);
  if (cors) headers.append("Access-Control-Expose-Headers", EXPOSED_FIELDS);
  return new Response(body || null, { status, headers });
}

/** The response with more fields; the headers of some responses (redirects) cannot be changed. */
export function withFields(response: Response, fields: Record<string, string>): Response {
  try {
    setFields(response.headers, fields);
    return response;
  } catch {
    const copy = new Response(response.body, response);
    setFields(copy.headers, fields);
    return copy;
  }
}

function setFields(headers: Headers, fields: Record<string, string>): Headers {
  for (const [name, value] of Object.entries(fields)) headers.set(name, value);
  return headers;
}

/** A browser asks by itself before it sends the real request; that one is counted. */
export function isPreflight({ method, headers }: Request): boolean {
  return method === "OPTIONS" && headers.has("access-control-request-method");
}

/** Decides about a request. */
export async function decideWeb<
  R extends Request,
  A extends unknown[],
  G extends GateMap,
  N extends GateName<G>,
>(
  client: GateClient<G>,
  request: R,
  options: WebGuardOptions<R, A, G, N>,
  rest: A,
): Promise<Verdict> {
  if (options.cors && isPreflight(request)) return UNGATED;
  const { address } = options;
  const ip =
    typeof address === "function"
      ? address(request, ...rest)
      : clientAddress(request.headers, address);
  return checkRequest(client, request, ip, options);
}

/** The response to a denied request, with the CORS headers of the options. */
export function denyWeb<
  R extends Request,
  A extends unknown[],
  G extends GateMap,
  N extends GateName<G>,
>(denial: Denial, request: R, { cors }: WebGuardOptions<R, A, G, N>): Response {
  return denialResponse(denial, typeof cors === "function" ? cors(request) : cors);
}
