// Looks up Pix keys within the buckets of presets/dict: the answer of DICT is the price of a lookup,
// and the payment that follows one gives a token back. CATRACA_URL and CATRACA_KEY name the server,
// DICT_URL the directory, and PARTICIPANT is the ISPB.
import express from "express";

// glue: begin
import { Catraca } from "@catraca/client";
import { guard } from "@catraca/client/express";

const catraca = new Catraca({ onFailure: "closed" });
const gate = ({ params }) => `getEntry.${params.type}`;
const subject = ({ query }) => ({ participant: process.env.PARTICIPANT, payer: query.payer });
const ref = ({ query }) => query.endToEndId;
// glue: end

const app = express();

app.get("/entries/:type/:key", guard(catraca, { gate, subject, ref }));
app.get("/entries/:type/:key", async (request, response) => {
  const entry = await fetch(`${process.env.DICT_URL}/entries/${request.params.key}`);
  response.status(entry.status).json(await entry.json());
});

// The payment order (pacs.008) of a lookup.
app.post("/payments", async (request, response) => {
  const credited = await catraca.credit(ref(request), "payment", subject(request));
  response.status(202).json({ credited: credited.applied });
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
