// Edge functions of a checkout, with the limits of presets/checkout by name. Supabase runs the same
// code; start it with `deno run --allow-net --allow-env main.ts`.

// glue: begin
import { Catraca } from "@catraca/client";
import {
  checkRateLimit,
  getClientIP,
  RATE_LIMIT_CONFIGS,
  rateLimitMiddleware,
  rateLimitOnlyMiddleware,
} from "@catraca/client/checkout";

const catraca = new Catraca({
  url: Deno.env.get("CATRACA_URL")!,
  key: Deno.env.get("CATRACA_KEY"),
});
// glue: end

const cors = {
  "Access-Control-Allow-Origin": "https://shop.example",
  "Access-Control-Allow-Headers": "content-type",
};

const handlers: Record<string, (request: Request) => Promise<Response>> = {
  // Blocklist and limits.
  "/mercadopago-create-payment": async (request) => {
    const config = RATE_LIMIT_CONFIGS.MERCADOPAGO_CREATE_PAYMENT;
    const denied = await rateLimitMiddleware(catraca, request, config, cors);
    return denied ?? Response.json({ paid: true }, { headers: cors });
  },

  // Limits alone.
  "/stripe-create-payment": async (request) => {
    const config = RATE_LIMIT_CONFIGS.STRIPE_CREATE_PAYMENT;
    const denied = await rateLimitOnlyMiddleware(catraca, request, config, cors);
    return denied ?? Response.json({ paid: true }, { headers: cors });
  },

  // By hand.
  "/buyer-login": async (request) => {
    const config = RATE_LIMIT_CONFIGS.BUYER_AUTH_LOGIN;
    const { allowed, retryAfter } = await checkRateLimit(catraca, getClientIP(request), config);
    if (allowed) return Response.json({ welcome: true }, { headers: cors });
    const body = { error: "Rate limit exceeded", retryAfter };
    const headers = { ...cors, "Retry-After": String(retryAfter) };
    return Response.json(body, { status: 429, headers });
  },

  "/gdpr-forget": async (request) => {
    const config = RATE_LIMIT_CONFIGS.GDPR_FORGET;
    const denied = await rateLimitMiddleware(catraca, request, config, cors);
    return denied ?? Response.json({ forgotten: true }, { headers: cors });
  },
};

const port = Number(Deno.env.get("PORT") ?? 8000);
Deno.serve({ port, hostname: "127.0.0.1" }, (request) => {
  if (request.method === "OPTIONS") return new Response(null, { headers: cors });
  const handler = handlers[new URL(request.url).pathname];
  return handler ? handler(request) : new Response("not found", { status: 404 });
});
