/** The result of a step: the last line of its container's termination message, and its exit code. */

import { z } from "zod";
import { steps } from "./task.ts";

/** Where Kubernetes reads a container's termination message. */
export const TERMINATION_LOG = "/dev/termination-log";

export const exitCodes = {
  done: 0,
  /** The build has failed, for the reason in the result. */
  failed: 1,
  /** A transient failure, or one of the platform: the step can be retried. */
  passing: 2,
} as const;

export const stepResult = z.object({
  step: z.enum(steps),
  /** Absent when the step succeeded. */
  code: z.string().max(64).optional(),
  message: z.string().max(1024).optional(),
  commitSha: z.string().optional(),
  /** First line. */
  commitMessage: z.string().max(256).optional(),
  /** What the planner planned for. */
  runtime: z.string().optional(),
  version: z.string().optional(),
  /** Of the manifest that was pushed. */
  digest: z
    .string()
    .regex(/^sha256:[a-f0-9]{64}$/)
    .optional(),
});
export type StepResult = z.output<typeof stepResult>;

/** Reads a termination message; undefined when it contains no result, as from a killed container. Pure. */
export function parseStepResult(message: string | undefined): StepResult | undefined {
  const line = message?.trimEnd().split("\n").at(-1);
  try {
    const result = stepResult.safeParse(JSON.parse(line ?? ""));
    return result.success ? result.data : undefined;
  } catch {
    return undefined;
  }
}
