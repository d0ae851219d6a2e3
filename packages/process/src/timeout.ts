/** The promise did not resolve within its time. */
export class TimeoutError extends Error {
  override readonly name = "TimeoutError";
}

/**
 * Resolves as the promise does. A result that arrives after `ms` is dropped; the work behind it is not cancelled.
 * @throws TimeoutError after `ms` milliseconds; whatever the promise is rejected with before
 */
export async function withTimeout<T>(promise: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new TimeoutError(`no answer for ${ms} ms`)), ms);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
