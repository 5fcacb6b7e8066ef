/**
 * Blocks that the server has reported, so that a blocked caller is denied without a call.
 *
 * An entry is used for a few seconds at most, counted from before its check was sent: an operator's
 * release reaches this client within that time. The number of entries is bounded; the oldest leaves first.
 */
import type { BlockCacheOptions } from "./settings.js";
import type { Decision, Subject } from "./types.js";

interface Entry {
  decision: Decision;
  /** Before the check was sent, so the block was still in force after it. */
  askedAt: number;
  usableUntil: number;
}

export class BlockCache {
  readonly #entries = new Map<string, Entry>();
  readonly #options: Required<BlockCacheOptions>;
  readonly #now: () => number;

  constructor(options: Required<BlockCacheOptions>, now: () => number = Date.now) {
    this.#options = options;
    this.#now = now;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The clock of the entries. */
  now(): number {
    return this.#now();
  }

  /** The decision about a caller that is known to be blocked, with the waits that are left now. */
  find(gate: string, subject: Subject, lists: boolean): Decision | undefined {
    if (this.#entries.size === 0) return undefined;
    const key = keyOf(gate, subject, lists);
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const now = this.#now();
    // A clock that was set back must not make an entry live longer.
    if (now >= entry.usableUntil || now < entry.askedAt) {
      this.#entries.delete(key);
      return undefined;
    }
    return after(entry.decision, now - entry.askedAt);
  }

  /** Remembers a decision if a repetition of the check could only be denied again. */
  store(
    gate: string,
    subject: Subject,
    lists: boolean,
    decision: Decision,
    askedAt: number,
  ): void {
    if (!isBlock(decision)) return;
    const key = keyOf(gate, subject, lists);
    const left = Math.min(this.#options.maxAgeMs, decision.retry_after_ms ?? Infinity);
    this.#entries.delete(key);
    if (left <= 0 || this.#options.maxEntries <= 0) return;
    if (this.#entries.size >= this.#options.maxEntries) {
      const oldest = this.#entries.keys().next().value;
      if (oldest !== undefined) this.#entries.delete(oldest);
    }
    this.#entries.set(key, { decision, askedAt, usableUntil: askedAt + left });
  }

  clear(): void {
    this.#entries.clear();
  }
}

/**
 * Only blocks and list entries: they deny every cost, and no policy counts a blocked check, not even
 * one that counts denied checks. So the server need not see it.
 */
function isBlock(decision: Decision): boolean {
  if (decision.allowed || decision.degraded) return false;
  const blocked = decision.reason === "blocked" || decision.reason === "blocklisted";
  return blocked || decision.blocked_until != null;
}

function after(decision: Decision, elapsedMs: number): Decision {
  const reason = decision.reason === "over_limit" ? "blocked" : decision.reason;
  const left = (ms: number | null) => (ms === null ? null : Math.max(ms - elapsedMs, 1));
  return {
    ...decision,
    reason,
    cached: true,
    retry_after_ms: left(decision.retry_after_ms),
    reset_after_ms: left(decision.reset_after_ms),
  };
}

/** The same for every order of the attributes. */
function keyOf(gate: string, subject: Subject, lists: boolean): string {
  const names = Object.keys(subject).filter((name) => subject[name] !== undefined).sort();
  return JSON.stringify([gate, lists, names.map((name) => [name, String(subject[name])])]);
}
