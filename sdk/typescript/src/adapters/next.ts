/** Guards for Next.js: `guarded` for route handlers, `guardMiddleware` for middleware or proxy. */
import type { GateMap, GateName } from "../types.js";
import type { GateClient } from "../guard/check-request.js";
import { decisionFields } from "../guard/fields.js";
import { decideWeb, denyWeb, withFields } from "../guard/web.js";
import type { WebGuardOptions } from "../guard/web.js";

export { guard, guarded } from "../guard/web.js";
export type { WebGuardOptions } from "../guard/web.js";

export type MiddlewareOptions<R extends Request, G extends GateMap, N extends GateName<G>> =
  WebGuardOptions<R, [], G, N> & {
    /** `NextResponse.next`: with it, allowed responses have the RateLimit fields too. */
    next?: () => Response;
  };

/**
 * Middleware that answers denied requests. It does not see the response of the route, so it cannot
 * settle; use `guarded` around the route handler where outcomes count.
 */
export function guardMiddleware<R extends Request, G extends GateMap, N extends GateName<G>>(
  client: GateClient<G>,
  options: MiddlewareOptions<R, G, N>,
): (request: R) => Promise<Response | undefined> {
  return async (request) => {
    const { decision, denial } = await decideWeb(client, request, options, []);
    if (denial) return denyWeb(denial, request, options);
    const response = options.next?.();
    return response && decision ? withFields(response, decisionFields(decision)) : response;
  };
}
