// Submits payments with the soft ban of presets/soft-ban: after a payment API has answered
// `{"reject_id": 5}`, the customer and the session are sent away for ten minutes.
// CATRACA_URL and CATRACA_KEY name the server, PAYMENT_API the payment API.
import express from "express";

// glue: begin
import { Catraca } from "@catraca/client";
import { guard } from "@catraca/client/express";

const catraca = new Catraca({ onFailure: "closed" });
const subject = ({ session }) => ({ customer: session.customer, session: session.id });
const limit = guard(catraca, { gate: "submit_payment", subject, denial: "message" });
// glue: end

const UNKNOWN = "Não foi possível confirmar o pagamento. Veja nos seus pedidos antes de tentar de novo.";
const DECLINED = "O pagamento não foi aceito. Confira os dados e tente de novo.";

const app = express();
app.use(express.json());

// Where your session middleware would be.
app.use((request, _, next) => {
  request.session = { customer: request.get("x-customer-no"), id: request.get("x-session-id") };
  next();
});

app.post("/CheckoutServices-SubmitPayment", limit); // glue
app.post("/CheckoutServices-SubmitPayment", async (request, response) => {
  const answer = await callPaymentApi(request.body);
  if (answer === null) return fail(response, 502, UNKNOWN);
  // Before the response, so that the ban is in force when the customer tries again.
  const settled = await catraca.settle(response.locals.catraca, answer).catch(console.error);
  // The rule of the catalog has the status and the text for a payment that starts a ban.
  const ban = settled?.policies.find(({ blocked_by }) => blocked_by === "ban");
  if (ban) return fail(response, ban.status, ban.message, Date.parse(ban.blocked_until));
  // A payment API that fails has not said what became of the payment, also if its body is JSON.
  if (answer.status >= 500) return fail(response, 502, UNKNOWN);
  if (answer.status >= 300 || answer.body.reject_id) return fail(response, 400, DECLINED);
  response.json({ success: true });
});

/** The status and the body of the answer; null if there is none that can be read. */
async function callPaymentApi(payment) {
  const headers = { "Content-Type": "application/json" };
  const signal = AbortSignal.timeout(30_000);
  const init = { method: "POST", headers, body: JSON.stringify(payment), signal };
  try {
    const answer = await fetch(process.env.PAYMENT_API, init);
    const body = await answer.json();
    return body !== null && typeof body === "object" ? { status: answer.status, body } : null;
  } catch {
    return null;
  }
}

function fail(response, status, errorMessage, until) {
  const retryAfter = until && Math.max(Math.ceil((until - Date.now()) / 1000), 1);
  if (retryAfter) response.set("Retry-After", String(retryAfter));
  response.status(status).json({ success: false, error: true, errorMessage, retryAfter });
}

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
