// Runs before every route: the limits of presets/booking, by path. Before Next.js 16 this file is
// `middleware.ts`.
import { NextResponse } from "next/server";
import type { NextRequest } from "next/server";

// glue: begin
import { guardMiddleware } from "@catraca/client/next";

import { catraca } from "./catraca";

const limit = guardMiddleware(catraca, {
  gate: ({ nextUrl }: NextRequest) =>
    nextUrl.pathname.startsWith("/api/appointments") ? "appointments" : "pages",
  subject: (request, ip) => ({ ip, ...shopOf(request) }),
  denial: "conflict",
  onFailure: "open", // without Catraca, the site goes on
  next: () => NextResponse.next(),
});
// glue: end

export function proxy(request: NextRequest) {
  return limit(request);
}

export const config = { matcher: "/api/:path*" };

/** Your session says which shop a request belongs to; here it is a header. */
function shopOf({ headers }: NextRequest) {
  return { tenant: headers.get("x-tenant-id") ?? "none", slug: headers.get("x-slug") ?? "none" };
}
