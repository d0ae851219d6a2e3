import { isRepeatable, isTransient, RETRIES, type RetryOptions, retryAfterMs, waitBefore } from "./retry.ts";
import { sleep } from "./sleep.ts";

/** Sends one request. */
export type Send = (request: Request) => Promise<Response>;

/**
 * A `fetch` that sends what is repeatable again after a connection that failed or a transient status.
 * @throws what `send` throws the last time, or the reason of the request's signal
 */
export function withRetries(send: Send, options: RetryOptions = {}): Send {
  const limits = { ...RETRIES, ...options };
  return async (request) => {
    if (!isRepeatable(request)) {
      return send(request);
    }
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await attemptOnce(send, request);
      const asked =
        outcome instanceof Response
          ? retryAfterMs(outcome.headers.get("retry-after"), Date.now())
          : undefined;
      const ended = outcome instanceof Response ? !isTransient(outcome.status) : request.signal.aborted;
      const wait = ended ? undefined : waitBefore(attempt, asked, Math.random(), limits);
      if (wait === undefined) {
        if (outcome instanceof Response) {
          return outcome;
        }
        throw outcome.error;
      }
      if (outcome instanceof Response) {
        // Its connection can be used again only once its body is over.
        await outcome.body?.cancel();
      }
      await sleep(wait, request.signal);
    }
  };
}

/** The response, or what sending failed with. A request's body can be read once: each attempt has a copy. */
async function attemptOnce(send: Send, request: Request): Promise<Response | { error: unknown }> {
  try {
    return await send(request.clone());
  } catch (error) {
    return { error };
  }
}
