// Runs before every route: the limits of presets/booking, by path. Before Next.js 16 this file is
// `middleware.ts`. CATRACA_URL and CATRACA_KEY name the server.
import { NextResponse } from "next/server";
import type { NextRequest } from "next/server";

// glue: begin
import { rateLimitProxy } from "@catraca/client/booking";

const limit = rateLimitProxy({ shop, next: NextResponse.next, except: ["/api/auth/login"] });
// glue: end

export function proxy(request: NextRequest) {
  return limit(request); // glue
}

export const config = { matcher: "/api/:path*" };

// glue: begin
/** Your session says which shop a request belongs to; here it is a header. */
function shop({ headers }: Request) {
  return { tenant: headers.get("x-tenant-id") ?? "none", slug: headers.get("x-shop-slug") ?? "none" };
}
// glue: end
