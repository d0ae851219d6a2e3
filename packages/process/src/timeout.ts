/** Did not come in time. */
export class TooLate extends Error {
  override readonly name = "TooLate";
}

/**
 * What the promise comes to. What it comes to later is dropped.
 * @throws TooLate after `ms` milliseconds; whatever the promise is rejected with before
 */
export async function inTime<T>(promise: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new TooLate(`no answer for ${ms} ms`)), ms);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
