import { z } from "zod";
import { text, timestamp } from "../fields.ts";

/** Most bytes of the log that are kept of a pre-deploy command, for each listed deployment. */
export const PRE_DEPLOY_LOG_MAX_BYTES = 4_096;

export const preDeployPhases = ["pending", "running", "succeeded", "failed", "skipped"] as const;

/** What has become of a deployment's pre-deploy command. */
export const preDeployRun = z
  .strictObject({
    status: z
      .enum(preDeployPhases)
      .describe(
        "How far it is; skipped: the deployment is a rollback that does not run it. Instances of the deployment begin once it has succeeded, or is skipped.",
      ),
    commandHash: text(1, 64, "Hash of the command and its time limit."),
    startedAt: timestamp("When its container started.").optional(),
    finishedAt: timestamp("When it ended.").optional(),
    observedAt: timestamp(
      "When its end was observed: the time limit of the rollout counts from then on.",
    ).optional(),
    exitCode: z
      .int()
      .meta({ description: "Exit code of its process, where it had one.", format: "int32" })
      .optional(),
    lastLines: text(
      0,
      PRE_DEPLOY_LOG_MAX_BYTES,
      "The end of its log, at most 4 KiB, where it could be read.",
    ).optional(),
  })
  .describe("What has become of its pre-deploy command; absent for a deployment that has none.");
export type PreDeployRun = z.output<typeof preDeployRun>;
