/**
 * Calls `check` every few milliseconds until it returns something true, and returns that.
 * @throws Error with `what` after `timeoutMs`
 */
export async function eventually<T>(
  what: string,
  check: () => T | Promise<T>,
  timeoutMs = 60_000,
): Promise<NonNullable<T>> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const value = await check();
    if (value) {
      return value;
    }
    if (performance.now() > end) {
      throw new Error(`did not happen within ${timeoutMs} ms: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
