// The test route of the site: GET shows counts, leases and settings, POST runs one of five actions.
// It has no key of its own: the caller's must have the role admin, or Catraca refuses it. So the
// server must have keys; on one without, every caller of this route would be its operator.

async function selfTest(request: Request): Promise<Response> {
  const authorization = request.headers.get("authorization");
  if (!authorization?.startsWith("Bearer ")) {
    return Response.json({ error: "send a key of the role admin" }, { status: 401 });
  }
  const { method } = request;
  const headers = { authorization, "content-type": "application/json" };
  const body = method === "POST" ? await request.text() : null;
  const url = `${process.env.CATRACA_URL}/v1/selftest`;
  const answer = await fetch(url, { method, headers, body, cache: "no-store" });
  const type = answer.headers.get("content-type") ?? "application/json";
  return new Response(answer.body, { status: answer.status, headers: { "content-type": type } });
}

export const GET = selfTest;
export const POST = selfTest;
