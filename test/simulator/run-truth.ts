/** What is true of one run in the model, regardless of what is reported of it. */

import type { JobRun } from "@slipway/crds";
import type { ContainerRecord } from "./container.ts";

export interface RunTruth {
  readonly name: string;
  readonly project: string;
  trigger: JobRun["spec"]["trigger"];
  scheduledAt: number;
  /** When its Job was in fact admitted. */
  admittedAt: number | undefined;
  plan: string | undefined;
  price: string | undefined;
  /** Its containers, in the order in which they started. */
  containers: ContainerRecord[];
  /** Since when a pod of it reports that its container has started. */
  startReportedAt: number | undefined;
  /** A pod of it reports so, or did while an operator had the time to see it. */
  isStartReported: boolean;
  /** Finishing times that a pod of it has reported. */
  reportedEnds: Set<string>;
  /** An administrator or a lost machine removed Job or pod: when its container ended is unknown. */
  tampered: boolean;
  /** Its JobRun reports that it runs, or ran. */
  seen: boolean;
  /** Its end was requested. */
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

/**
 * Whether the operator knows that a run had a container: it has observed it, or nothing kept it from observing it. It cannot know of
 * one that started on a node that was lost before it reported the start; nor of one whose start was reported while nobody led,
 * for a node that comes back reports a container that it has lost without its times.
 */
export function isStartKnown({ containers, tampered, seen, isStartReported }: RunTruth): boolean {
  if (seen) {
    return true;
  }
  return !tampered && (isStartReported ? containers.length > 0 : containers.some(({ lost }) => !lost));
}
