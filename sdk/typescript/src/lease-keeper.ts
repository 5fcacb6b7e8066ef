/**
 * Keeps a lease alive while a function runs, and aborts a signal when the lease is lost.
 *
 * The end of the lease is counted from before its request was sent, on this machine's monotonic
 * clock, so it is never later than the server's own end.
 */
import { LockLostError, UnavailableError } from "./errors.js";

/** Renews the lease: the milliseconds that it then lasts, or null if it is no longer held. */
export type Renew = () => Promise<number | null>;

const RENEW_AFTER = 1 / 3;
const RETRY_AFTER = 1 / 10;
const SHORTEST_WAIT_MS = 20;

export class LeaseKeeper {
  readonly #renew: Renew;
  readonly #controller = new AbortController();
  #ttlMs: number;
  #renewTimer: ReturnType<typeof setTimeout> | undefined;
  #endTimer: ReturnType<typeof setTimeout> | undefined;
  #stopped = false;

  /** `sentAt` is `performance.now()` before the request that returned `ttlMs`. */
  constructor(ttlMs: number, sentAt: number, renew: Renew) {
    this.#renew = renew;
    this.#ttlMs = ttlMs;
    this.#extend(ttlMs, sentAt);
  }

  /** Aborted, with a `LockLostError`, when the lease may have ended. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#renewTimer);
    clearTimeout(this.#endTimer);
  }

  #extend(ttlMs: number, sentAt: number): void {
    this.#ttlMs = ttlMs;
    clearTimeout(this.#endTimer);
    const left = ttlMs - (performance.now() - sentAt);
    this.#endTimer = setTimeout(() => this.#lose("its time was over"), Math.max(left, 0));
    this.#schedule(ttlMs * RENEW_AFTER);
  }

  #schedule(waitMs: number): void {
    const wait = Math.max(waitMs, SHORTEST_WAIT_MS);
    this.#renewTimer = setTimeout(() => void this.#attempt(), wait);
  }

  async #attempt(): Promise<void> {
    const sentAt = performance.now();
    try {
      const ttlMs = await this.#renew();
      if (this.#stopped) return;
      if (ttlMs === null) return this.#lose("the server says that it has ended");
      this.#extend(ttlMs, sentAt);
    } catch (error) {
      if (this.#stopped) return;
      if (!(error instanceof UnavailableError)) return this.#lose(String(error));
      // The lease is still ours until its end, which the other timer watches.
      this.#schedule(this.#ttlMs * RETRY_AFTER);
    }
  }

  #lose(why: string): void {
    this.stop();
    this.#controller.abort(new LockLostError(`the lease was lost: ${why}`));
  }
}
