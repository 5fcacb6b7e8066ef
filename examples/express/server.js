// A login behind a gate: `CATRACA_URL=http://127.0.0.1:7878 node server.js`.
import express from "express";

// glue: begin
import { Catraca } from "@catraca/client";
import { guard } from "@catraca/client/express";

const catraca = new Catraca();
await catraca.verify(["login"]);
// glue: end

const app = express();
app.set("trust proxy", "loopback");
app.use(express.json());

app.post("/login", guard(catraca, { gate: "login", onFailure: "closed" }));
app.post("/login", (request, response) => {
  const correct = request.body.password === "correct";
  response.status(correct ? 200 : 401).json({ correct });
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
