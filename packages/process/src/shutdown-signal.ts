import type { Logger } from "./logger.ts";

/** Aborts on the first SIGTERM or SIGINT. A second one ends the process immediately, with exit code 1. */
export function shutdownSignal(log: Pick<Logger, "info">): AbortSignal {
  const stop = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      if (stop.signal.aborted) {
        process.exit(1);
      }
      log.info({ signal }, "stopping");
      stop.abort();
    });
  }
  return stop.signal;
}
