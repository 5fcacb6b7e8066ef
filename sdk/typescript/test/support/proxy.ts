// A proxy in front of the server that counts calls and can lose answers.
import { createServer, request as forward } from "node:http";
import type { IncomingHttpHeaders, Server } from "node:http";
import type { AddressInfo } from "node:net";

/** `lose`: the server handles the call and its answer never arrives. `cut`: the connection ends. */
export type ProxyMode = "pass" | "lose" | "cut" | "error";

export interface TestProxy {
  url: string;
  mode: ProxyMode;
  /** With another mode, the number of calls after which it is `pass` again. */
  remaining: number;
  /** The path of the calls that the mode is about; all by default. */
  path: string | null;
  /** The paths of all calls. */
  calls: string[];
  lastHeaders: IncomingHttpHeaders;
  lastBody: string;
  close(): Promise<void>;
}

export async function startProxy(target: string): Promise<TestProxy> {
  const state: TestProxy = {
    url: "",
    mode: "pass",
    remaining: Infinity,
    path: null,
    calls: [],
    lastHeaders: {},
    lastBody: "",
    close: () => closeServer(server),
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const isMeant = state.path === null || state.path === request.url;
      const mode = isMeant && state.remaining > 0 ? state.mode : "pass";
      if (isMeant) state.remaining -= 1;
      state.calls.push(request.url ?? "");
      state.lastHeaders = request.headers;
      state.lastBody = Buffer.concat(chunks).toString();
      const { method, headers } = request;
      const call = forward(target + request.url, { method, headers }, (answer) => {
        if (mode === "lose") return answer.resume();
        if (mode === "cut") return request.socket.destroy();
        response.writeHead(mode === "error" ? 503 : (answer.statusCode ?? 500), answer.headers);
        return answer.pipe(response);
      });
      call.on("error", () => request.socket.destroy());
      call.end(state.lastBody);
    });
  });
  state.url = await listen(server);
  return state;
}

export async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
