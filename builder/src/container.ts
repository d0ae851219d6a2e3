/** What one container of a build pod does: waits for the one before it, carries out its steps, and hands over. */

import { EarlyEngine } from "./backend/prestart.ts";
import { handedOver, handOver } from "./completion.ts";
import { failure } from "./failures/codes.ts";
import { exitCodes, type StepResult } from "./result.ts";
import { openEngine, type RunnerOptions, runStep } from "./runner.ts";
import { type Container, containerSteps, containers } from "./task.ts";

export interface ContainerOptions extends Omit<RunnerOptions, "step" | "engine"> {
  container: Container;
}

export interface ContainerEnd {
  /** Undefined when it had nothing to do: the container before it tells why. */
  result?: StepResult;
  exitCode: number;
}

const NOTHING: ContainerEnd = { exitCode: exitCodes.passing };

/** All containers start at once: what makes images does so while the source is still being fetched. */
export async function runContainer(options: ContainerOptions): Promise<ContainerEnd> {
  const { container, paths, signal } = options;
  const engine = container === "build" ? new EarlyEngine(openEngine(options)) : undefined;
  try {
    const before = containers[containers.indexOf(container) - 1];
    const hasTurn = before === undefined || (await handedOver(paths, before, signal)) === "done";
    return await handOverAfter(options, hasTurn ? await runSteps(options, engine) : NOTHING);
  } finally {
    await engine?.close();
  }
}

/** @returns the end of the first step that failed, or of the last */
async function runSteps(
  { container, ...options }: ContainerOptions,
  engine: EarlyEngine | undefined,
): Promise<ContainerEnd> {
  const [first, ...others] = containerSteps[container].map(
    (step) => () => runStep({ ...options, step, engine: engine?.use }),
  );
  if (first === undefined) {
    throw new Error(`no step of ${container}`);
  }
  let ended = await first();
  for (const next of others) {
    if (ended.exitCode === exitCodes.done) {
      ended = await next();
    }
  }
  return ended;
}

async function handOverAfter(
  { container, paths }: ContainerOptions,
  ended: ContainerEnd,
): Promise<ContainerEnd> {
  // Nobody waits for the last one.
  if (container === containers.at(-1)) {
    return ended;
  }
  const how = ended.exitCode === exitCodes.done ? "done" : "failed";
  try {
    await handOver(paths, container, how);
    return ended;
  } catch {
    // The next one would wait for ever; the end of this one ends it.
    if (how === "failed") {
      return ended;
    }
    const { code, message } = failure("BUILD_ENGINE_FAILED", {
      said: "Its work folder cannot be written to.",
    });
    const step = containerSteps[container].at(-1) ?? "build";
    return { result: { step, code, message }, exitCode: exitCodes.passing };
  }
}
