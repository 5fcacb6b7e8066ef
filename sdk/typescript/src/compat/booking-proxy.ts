/** The limits of presets/booking before every route of a Next.js application. */
import { guardMiddleware } from "../adapters/next.js";
import type { WebGuardOptions } from "../guard/web.js";
import type { GateMap } from "../types.js";
import { currentServices } from "./booking-functions.js";

export interface RateLimitProxyOptions<R extends Request> {
  /** The shop that a request belongs to, as the session says: never the browser alone. */
  shop: (request: R) => { tenant?: string; slug?: string };
  /** `NextResponse.next`: with it, allowed responses have the RateLimit fields too. */
  next?: () => Response;
  /** Where the client's address is; the last entry of `X-Forwarded-For` by default. */
  address?: WebGuardOptions<R, [], GateMap, string>["address"];
  /** Paths that another guard checks, such as `guarded` around their route handler. */
  except?: string[];
}

/** Checks each request by its path, and answers denied ones. Requests pass without Catraca. */
export function rateLimitProxy<R extends Request>(
  options: RateLimitProxyOptions<R>,
): (request: R) => Promise<Response | undefined> {
  const { catraca } = currentServices();
  const { shop, next, address, except = [] } = options;
  return guardMiddleware<R, GateMap, string>(catraca, {
    gate: (request) => {
      const { pathname } = new URL(request.url);
      return except.some((path) => isBelow(pathname, path)) ? null : gateOfPath(pathname);
    },
    subject: (request, ip) => ({ ip, ...shop(request) }),
    denial: "conflict",
    onFailure: catraca.onFailure ?? "open",
    ...(next && { next }),
    ...(address && { address }),
  });
}

const GATES: Record<string, string> = {
  "/api/auth/login": "login",
  "/api/appointments": "appointments",
  "/api/payments": "payments",
  "/api/services": "pages",
  "/api/employees": "pages",
};

/** The gate of a path, as the routes of presets/booking. */
export function gateOfPath(pathname: string): string {
  const found = Object.keys(GATES).find((path) => isBelow(pathname, path));
  return (found && GATES[found]) ?? "global";
}

function isBelow(pathname: string, path: string): boolean {
  return pathname === path || pathname.startsWith(`${path}/`);
}
