import { KubeError } from "@slipway/controller-runtime";

/**
 * Runs work whose calls to the cluster share one deadline: its signal aborts after `ms` with the error of a call that got no
 * answer, a KubeError of status 0. Unlike `withTimeout` it cancels what is under way, so nothing is written afterwards.
 */
export async function withDeadline<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const deadline = new AbortController();
  const message = `not done within ${ms} ms`;
  const abort = () => deadline.abort(new KubeError({ status: 0, reason: "Timeout", message }));
  const timer = setTimeout(abort, ms);
  try {
    return await work(deadline.signal);
  } finally {
    clearTimeout(timer);
  }
}
