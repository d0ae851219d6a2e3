import { type Dispatcher, errors } from "undici";

type Response = Dispatcher.ResponseData;

/**
 * Sends with a signal that aborts when the caller's does, or when no headers have come after `ms`, whatever the request
 * waited for: undici's own timeout begins only once it is written to a connection, and all may be in use by silent ones.
 */
export async function headersInTime(
  ms: number,
  signal: AbortSignal | undefined,
  send: (signal: AbortSignal) => Promise<Response>,
): Promise<Response> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new errors.HeadersTimeoutError()), ms);
  const either = signal ? AbortSignal.any([signal, late.signal]) : late.signal;
  try {
    return await unlessAborted(send(either), either);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Rejects as soon as the signal aborts. undici itself checks the signal only once a connection is open, so that a request
 * that waits for one could outlive its deadline by the connect timeout.
 */
export function unlessAborted(
  response: Promise<Response>,
  signal: AbortSignal | undefined,
): Promise<Response> {
  if (!signal) {
    return response;
  }
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    response
      .finally(() => signal.removeEventListener("abort", abort))
      .then((data) => {
        if (signal.aborted) {
          data.body.destroy();
        }
        resolve(data);
      }, reject);
  });
}
