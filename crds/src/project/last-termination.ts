import { z } from "zod";
import { text, timestamp } from "../fields.ts";

/** Most characters of an instance's last lines; the kubelet keeps 2 KiB of them. */
export const LAST_LINES_MAX_LENGTH = 2_048;

const whole = (about: string) => z.int().meta({ description: about, format: "int32" });

/** How an instance of an HTTP project ended that was not stopped by the platform's own doing. */
export const lastTermination = z
  .strictObject({
    instance: text(1, 253, "Name of the instance."),
    exitCode: whole("Exit code of its process; 128 and the signal's number where a signal ended it."),
    signal: whole(
      "Number of the signal that ended it, where the container's runtime reports one.",
    ).optional(),
    reason: text(
      1,
      64,
      "LivenessFailed or StartupTimeout where the platform restarted it because of a probe, else what the kubelet reports, such as Error, OOMKilled or Completed.",
    ),
    finishedAt: timestamp("When it ended."),
    restarts: z.int().min(0).meta({ description: "Restarts of that instance so far.", format: "int32" }),
    lastLines: text(
      0,
      LAST_LINES_MAX_LENGTH,
      "Last lines of its log, of one that ended with an error; absent where pods are made from template version 1.",
    ).optional(),
  })
  .describe(
    "How the instance that ended last has ended, of those that were not stopped on purpose; absent again once a later deployment has succeeded.",
  );
export type LastTermination = z.output<typeof lastTermination>;
