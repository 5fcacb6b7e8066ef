// Edge functions of a checkout, with the limits of presets/checkout by name. Supabase runs the same
// code; start it with `deno run --allow-net --allow-env main.ts`. The environment variables
// CATRACA_URL and CATRACA_KEY name the server.

// glue: begin
import { Catraca } from "@catraca/client";
import * as limits from "@catraca/client/checkout";

const catraca = new Catraca();
const CONFIG = limits.RATE_LIMIT_CONFIGS;
// glue: end

const cors = {
  "Access-Control-Allow-Origin": "https://shop.example",
  "Access-Control-Allow-Headers": "content-type",
};
const paid = () => Response.json({ paid: true }, { headers: cors });

const handlers: Record<string, (request: Request) => Promise<Response>> = {
  // Blocklist and limits.
  "/mercadopago-create-payment": async (request) =>
    (await limits.rateLimitMiddleware(catraca, request, CONFIG.MERCADOPAGO_CREATE_PAYMENT, cors)) ??
    paid(),

  // Limits alone.
  "/stripe-create-payment": async (request) =>
    (await limits.rateLimitOnlyMiddleware(catraca, request, CONFIG.STRIPE_CREATE_PAYMENT, cors)) ??
    paid(),

  // By hand.
  "/buyer-login": async (request) => {
    const ip = limits.getClientIP(request); // glue
    const result = await limits.checkRateLimit(catraca, ip, CONFIG.BUYER_AUTH_LOGIN);
    if (!result.allowed) return limits.createRateLimitResponse(result, cors); // glue
    return Response.json({ welcome: true }, { headers: cors });
  },

  "/gdpr-forget": async (request) => {
    const denied = await limits.rateLimitMiddleware(catraca, request, CONFIG.GDPR_FORGET, cors);
    return denied ?? Response.json({ forgotten: true }, { headers: cors });
  },
};

const port = Number(Deno.env.get("PORT") ?? 8000);
Deno.serve({ port, hostname: "127.0.0.1" }, (request) => {
  if (request.method === "OPTIONS") return new Response(null, { headers: cors });
  const handler = handlers[new URL(request.url).pathname];
  return handler ? handler(request) : new Response("not found", { status: 404 });
});
