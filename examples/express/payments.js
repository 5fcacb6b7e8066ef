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

const app = express();
app.use(express.json());

// Where your session middleware would be.
app.use((request, _, next) => {
  request.session = { customer: request.get("x-customer-no"), id: request.get("x-session-id") };
  next();
});

app.post("/CheckoutServices-SubmitPayment", limit); // glue
app.post("/CheckoutServices-SubmitPayment", async (request, response) => {
  const body = JSON.stringify(request.body);
  const answer = await (await fetch(process.env.PAYMENT_API, { method: "POST", body })).json();
  // Before the response, so that the ban is in force when the customer tries again.
  await catraca.settle(response.locals.catraca, { body: answer }).catch(console.error);
  response.json({ success: answer.reject_id === undefined });
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
