/** One call to the server: its deadline, its retries, and what its status means. */
import { CatracaError, UnavailableError } from "./errors.js";
import type { Settings } from "./settings.js";
import type { Problem } from "./types.js";

/** The bounds of a call. */
export interface CallBounds {
  /** Aborts the call; the promise then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** How long the call may take, with its retries; by default the client's `deadlineMs`. */
  deadlineMs?: number | undefined;
}

export interface CallOptions extends CallBounds {
  method?: string;
  /** The body, sent as JSON. */
  body?: unknown;
  /** Statuses besides 2xx that are an answer and not an error. */
  accept?: readonly number[];
  /** Whether the call may be sent again after a failure. Not a check: it might count twice. */
  retry?: boolean;
}

export interface Answer<T> {
  status: number;
  headers: Headers;
  body: T;
}

const ATTEMPTS = 3;
const BACKOFF_MS = 25;
/** Besides 5xx: the server, or a proxy in front of it, could not execute the call now. */
const TRANSIENT = [408, 429];
/** Next.js caches the answers of its `fetch`, also of a POST; others ignore this member. */
const NEVER_CACHED = { next: { revalidate: 0 } };

export class Transport {
  readonly #settings: Settings;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  get hasKey(): boolean {
    return "authorization" in this.#settings.headers;
  }

  /** Rejects with `CatracaError` (4xx), `UnavailableError`, or the reason of the own signal. */
  async call<T>(path: string, options: CallOptions = {}): Promise<Answer<T>> {
    const deadline = Date.now() + (options.deadlineMs ?? this.#settings.deadlineMs);
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#send<T>(path, options, deadline - Date.now());
      } catch (error) {
        const wait = BACKOFF_MS * 2 ** (attempt - 1) * (0.5 + Math.random());
        const again = options.retry && attempt < ATTEMPTS && error instanceof UnavailableError;
        if (!again || Date.now() + wait >= deadline) throw error;
        await pause(wait, options.signal);
      }
    }
  }

  async #send<T>(path: string, options: CallOptions, timeoutMs: number): Promise<Answer<T>> {
    const { signal } = options;
    signal?.throwIfAborted();
    const controller = new AbortController();
    const abort = () => controller.abort();
    const timer = setTimeout(abort, Math.max(timeoutMs, 0));
    signal?.addEventListener("abort", abort, { once: true });
    try {
      const response = await this.#settings.fetch(this.#settings.url + path, {
        method: options.method ?? "POST",
        headers: this.#settings.headers,
        body: options.body === undefined ? null : JSON.stringify(options.body),
        signal: controller.signal,
        // Catraca never redirects; `error` does not exist on Workers.
        redirect: "manual",
        ...NEVER_CACHED,
      });
      return judge<T>(response, await response.text(), options.accept);
    } catch (error) {
      throw explain(error, signal, controller.signal);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }
}

/** What a status means: an answer, a refusal, or a server that cannot answer now. */
function judge<T>(response: Response, text: string, accept: readonly number[] = []): Answer<T> {
  const { status, headers } = response;
  if (status >= 500 || TRANSIENT.includes(status)) {
    throw new UnavailableError(`the server answered ${status}`, status);
  }
  const body = parse(text, status);
  const isProblem = headers.get("content-type")?.startsWith("application/problem");
  if (!response.ok && (isProblem || !accept.includes(status))) {
    throw new CatracaError(status, (body ?? {}) as Partial<Problem>);
  }
  return { status, headers, body: body as T };
}

function parse(text: string, status: number): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new UnavailableError("the response is not JSON; does `url` name Catraca?", status, cause);
  }
}

/** The reason of a failed `fetch`: the caller's signal, our deadline, or the network. */
function explain(error: unknown, caller: AbortSignal | undefined, deadline: AbortSignal): unknown {
  if (error instanceof CatracaError || error instanceof UnavailableError) return error;
  if (caller?.aborted) return caller.reason;
  if (deadline.aborted) return new UnavailableError("no answer within the deadline");
  const cause = (error as { cause?: { code?: string; message?: string } })?.cause;
  const detail = cause?.code ?? cause?.message ?? (error as Error)?.message ?? "no connection";
  return new UnavailableError(detail, undefined, error);
}

/** Waits; rejects with the reason of the signal if it aborts before. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}
