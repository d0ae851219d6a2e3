import { KubeError } from "@slipway/controller-runtime";

/**
 * Work that looks at a signal, which aborts after `ms` as a call does that got no answer: with a KubeError of status 0.
 */
export async function inTime<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  const message = `not done within ${ms} ms`;
  const abort = () => late.abort(new KubeError({ status: 0, reason: "Timeout", message }));
  const timer = setTimeout(abort, ms);
  try {
    return await work(late.signal);
  } finally {
    clearTimeout(timer);
  }
}
