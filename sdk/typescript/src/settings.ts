/** The options of a client, and their defaults. */
import type { FailureMode } from "./types.js";
import { VERSION } from "./version.js";

export interface ClientOptions {
  /** Where Catraca listens; by default `CATRACA_URL` of the environment, or port 7878 here. */
  url?: string | undefined;
  /** The API key; by default `CATRACA_KEY` of the environment; an empty one is none. */
  key?: string | undefined;
  /** How long a call may take, with its retries, in milliseconds; 500 by default. */
  deadlineMs?: number | undefined;
  /** What becomes of a check that Catraca does not answer; `error` by default. */
  onFailure?: FailureMode | undefined;
  /** The calling program as `name/version`, sent as `Catraca-Caller`. */
  caller?: string | undefined;
  /** Blocks that are remembered here, to deny without a call; `false` turns it off. */
  blockCache?: BlockCacheOptions | false;
  /**
   * Called with each failure of a check, in every failure mode, and each failed settle. By default
   * the start and the end of an outage are one `console.warn` each.
   */
  onUnavailable?: (error: Error) => void;
  /** Called with each `Warning`; `console.warn` by default. */
  onWarning?: (warning: Warning) => void;
  /** Another `fetch`, for example with a connection pool of its own. */
  fetch?: typeof fetch;
}

export interface BlockCacheOptions {
  /** After this time the server is asked again, so that a released caller gets in; 5,000. */
  maxAgeMs?: number;
  /** The most blocks that are remembered; 10,000. */
  maxEntries?: number;
}

/** A sign of misconfiguration, or a lease that could not be ended or confirmed after its use. */
export interface Warning {
  code:
    | "unavailable"
    | "key-refused"
    | "wrong-role"
    | "admin-key"
    | "unknown-gate"
    | "clock-difference"
    | "same-address"
    | "release-failed"
    | "confirm-failed";
  /** What is wrong, and how to fix it or what follows. */
  detail: string;
}

export interface Settings {
  url: string;
  headers: Record<string, string>;
  deadlineMs: number;
  onFailure: FailureMode | undefined;
  blockCache: Required<BlockCacheOptions> | null;
  onUnavailable: ((error: Error) => void) | undefined;
  onWarning: (warning: Warning) => void;
  fetch: typeof fetch;
}

const DEFAULT_URL = "http://127.0.0.1:7878";
const DEADLINE_MS = 500;
const BLOCK_AGE_MS = 5_000;
const BLOCK_ENTRIES = 10_000;
const CALLER = /^[A-Za-z0-9._/-]{1,64}$/;

export function readOptions(options: ClientOptions): Settings {
  const url = new URL(options.url ?? readEnvironment("CATRACA_URL") ?? DEFAULT_URL);
  const key = options.key ?? readEnvironment("CATRACA_KEY");
  const deadlineMs = options.deadlineMs ?? DEADLINE_MS;
  if (!(deadlineMs > 0)) throw new TypeError("deadlineMs must be more than 0");
  const caller = options.caller ?? `catraca-ts/${VERSION}`;
  if (!CALLER.test(caller)) {
    throw new TypeError("caller must be 1 to 64 of A-Z a-z 0-9 . _ / -, such as `shop/1.4`");
  }
  const headers: Record<string, string> = {
    "content-type": "application/json",
    "catraca-caller": caller,
  };
  if (key) headers.authorization = `Bearer ${key}`;
  return {
    url: (url.origin + url.pathname).replace(/\/+$/, ""),
    headers,
    deadlineMs,
    onFailure: options.onFailure,
    blockCache: readBlockCache(options.blockCache),
    onUnavailable: options.onUnavailable,
    onWarning: options.onWarning ?? warnOnConsole,
    // A browser refuses a `fetch` that is called as a method of another object.
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
  };
}

/** A variable of Node, Bun, Deno or Next.js; undefined in browsers, and if it may not be read. */
function readEnvironment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  try {
    return process?.env?.[name] || undefined;
  } catch {
    return undefined;
  }
}

function readBlockCache(options: BlockCacheOptions | false = {}) {
  if (options === false) return null;
  const maxAgeMs = options.maxAgeMs ?? BLOCK_AGE_MS;
  const maxEntries = options.maxEntries ?? BLOCK_ENTRIES;
  return { maxAgeMs, maxEntries };
}

function warnOnConsole(warning: Warning): void {
  console.warn(`catraca: ${warning.code}: ${warning.detail}`);
}
