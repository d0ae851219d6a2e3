/** Runs one container of a build pod: waits for the one before it, runs its steps, and reports its completion. */

import { PrestartedBackend } from "./backend/backend.ts";
import { reportCompletion, waitForCompletion } from "./completion.ts";
import { failure } from "./failures/codes.ts";
import { exitCodes, type StepResult } from "./result.ts";
import { openBackend, type RunnerOptions, runStep } from "./runner.ts";
import { type Container, containerSteps, containers } from "./task.ts";

export interface ContainerOptions extends Omit<RunnerOptions, "step" | "backend"> {
  container: Container;
}

export interface ContainerResult {
  /** Undefined when it had nothing to do: an earlier container reports why. */
  result?: StepResult;
  exitCode: number;
}

const NOTHING: ContainerResult = { exitCode: exitCodes.passing };

/** All containers start together: the builder backend starts while the source is still being fetched. */
export async function runContainer(options: ContainerOptions): Promise<ContainerResult> {
  const { container, paths, signal } = options;
  const backend = container === "build" ? new PrestartedBackend(openBackend(options)) : undefined;
  try {
    const before = containers[containers.indexOf(container) - 1];
    const canRun = before === undefined || (await waitForCompletion(paths, before, signal)) === "done";
    return await reportResult(options, canRun ? await runSteps(options, backend) : NOTHING);
  } finally {
    await backend?.close();
  }
}

/** @returns the result of the first step that failed, or of the last */
async function runSteps(
  { container, ...options }: ContainerOptions,
  backend: PrestartedBackend | undefined,
): Promise<ContainerResult> {
  const [first, ...others] = containerSteps[container].map(
    (step) => () => runStep({ ...options, step, backend: backend?.use }),
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

async function reportResult(
  { container, paths }: ContainerOptions,
  ended: ContainerResult,
): Promise<ContainerResult> {
  // No container waits for the last one.
  if (container === containers.at(-1)) {
    return ended;
  }
  const how = ended.exitCode === exitCodes.done ? "done" : "failed";
  try {
    await reportCompletion(paths, container, how);
    return ended;
  } catch {
    // The next one would wait for ever; the pod fails with this container.
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
