/** Where a JobRun stands, as its conditions say; the operator and the API judge it alike. Pure. */

import type { JobRunCondition } from "./conditions.ts";
import type { JobRun } from "./jobrun.ts";

const statusOf = ({ status }: JobRun, type: JobRunCondition) =>
  status?.conditions?.find((condition) => condition.type === type)?.status;

/** Whether it was not admitted, for good: then there never was a run. */
export const isRunRefused = (run: JobRun): boolean => statusOf(run, "Admitted") === "False";

/** Whether its container never ran, and never will. */
export const isRunNeverStarted = (run: JobRun): boolean => statusOf(run, "Finished") === "False";

/** Whether it may still begin or go on, or its charge is not recorded yet: a deletion of its project waits for it. */
export const isRunPending = (run: JobRun): boolean =>
  !isRunRefused(run) &&
  !isRunNeverStarted(run) &&
  run.status?.chargedAt === undefined &&
  statusOf(run, "Charged") !== "True";
