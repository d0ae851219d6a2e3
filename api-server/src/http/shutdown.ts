import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";

export interface ShutdownPlan {
  /** How long to serve on, unready, until routers have noticed. */
  drainMs: number;
  beginDraining: () => void;
  /** In order; each waits for the one before. */
  steps: readonly (() => unknown)[];
}

/** Milliseconds after which the process ends although a step has not. */
const STEPS_LIMIT_MS = 20_000;

/** On SIGTERM or SIGINT: turn unready, serve until routers have noticed, run the steps, exit. A second signal ends the process immediately. */
export function shutdownInOrder(logger: Logger, plan: ShutdownPlan): void {
  let ending = false;
  const end = async (signal: NodeJS.Signals) => {
    if (ending) {
      process.exit(1);
    }
    ending = true;
    logger.info({ signal, drainMs: plan.drainMs }, "ending");
    plan.beginDraining();
    await sleep(plan.drainMs);
    const limit = setTimeout(() => {
      logger.error("ending took too long");
      process.exit(1);
    }, STEPS_LIMIT_MS);
    limit.unref();
    for (const step of plan.steps) {
      try {
        await step();
      } catch (error) {
        logger.error({ err: error }, "a step of the end failed");
      }
    }
    logger.info("ended");
    process.exit(0);
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, (received) => void end(received));
  }
}
