/** What the model knows of one run, whoever tells what of it. */

import type { JobRun } from "@slipway/crds";
import type { ContainerRecord } from "./container.ts";

export interface RunTruth {
  readonly name: string;
  readonly project: string;
  trigger: JobRun["spec"]["trigger"];
  scheduledAt: number;
  /** When its Job was let go in truth. */
  admittedAt: number | undefined;
  plan: string | undefined;
  price: string | undefined;
  /** Its containers, in the order in which they started. */
  containers: ContainerRecord[];
  /** Since when a pod of it tells the cluster that its container started. */
  startReportedAt: number | undefined;
  /** A pod of it tells so, or told so while an operator had the time to see it. */
  isStartReported: boolean;
  /** Finishing times that a pod of it told the cluster of. */
  reportedEnds: Set<string>;
  /** An administrator or a lost machine took Job or pod away: nobody can tell when its container ended. */
  tampered: boolean;
  /** Its JobRun tells that it runs, or ran. */
  seen: boolean;
  /** Somebody asked for its end. */
  cancelled: boolean;
  /** When it was last observed running before that request was committed. */
  seenBeforeCancel: string | undefined;
  /** The JobRun as it was when its terminal state was written. */
  ended: JobRun | undefined;
}

/** A run of which nothing is known yet. */
export function newRunTruth(name: string, project: string, scheduledAt: number): RunTruth {
  return {
    name,
    project,
    trigger: "schedule",
    scheduledAt,
    admittedAt: undefined,
    plan: undefined,
    price: undefined,
    containers: [],
    startReportedAt: undefined,
    isStartReported: false,
    reportedEnds: new Set(),
    tampered: false,
    cancelled: false,
    seenBeforeCancel: undefined,
    seen: false,
    ended: undefined,
  };
}
