// A login behind a gate of its own: the guard sees the status of the response, which the proxy does
// not, and settles with it.

// glue: begin
import { Catraca } from "@catraca/client";
import { guarded } from "@catraca/client/next";

const tenant = (request: Request) => request.headers.get("x-tenant-id") ?? "none";
const subject = (request: Request, ip?: string) => ({ ip, tenant: tenant(request) });
export const POST = guarded(new Catraca(), { gate: "login", subject, onFailure: "closed" }, logIn);
// glue: end

async function logIn(request: Request): Promise<Response> {
  const { password } = await request.json();
  const correct = password === "correct";
  return Response.json({ correct }, { status: correct ? 200 : 401 });
}
