// glue: begin
import { Catraca } from "@catraca/client";

export const catraca = new Catraca({
  url: process.env.CATRACA_URL ?? "http://127.0.0.1:7878",
  key: process.env.CATRACA_KEY,
});
// glue: end
