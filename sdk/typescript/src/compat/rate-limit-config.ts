/** A named configuration. Only generated files make them, so that code has no limits inline. */
declare const generated: unique symbol;

export interface RateLimitConfig<A extends string = string> {
  /** The gate. */
  readonly action: A;
  readonly maxAttempts: number;
  readonly windowMinutes: number;
  readonly blockDurationMinutes: number;
  /** Makes a literal with the same fields a type error. */
  readonly [generated]: true;
}

/** For the module that `catraca types --lang ts --configs` prints for a catalog. */
export function rateLimitConfig<A extends string>(
  action: A,
  maxAttempts: number,
  windowMinutes: number,
  blockDurationMinutes: number,
): RateLimitConfig<A> {
  const fields = { action, maxAttempts, windowMinutes, blockDurationMinutes };
  return Object.freeze(fields) as RateLimitConfig<A>;
}
