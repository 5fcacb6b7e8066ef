// Waits until something is true, and fails with its name if it never is. A loop without a bound
// keeps the test process alive, which hides the failed test from the runner.

const SECONDS_MAX = 60;

export async function waitUntil(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
): Promise<void> {
  const end = performance.now() + SECONDS_MAX * 1_000;
  while (!(await isTrue())) {
    if (performance.now() > end) throw new Error(`not within ${SECONDS_MAX} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
