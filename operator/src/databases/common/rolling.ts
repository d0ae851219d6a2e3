/**
 * The rolling update: which outdated pod is replaced next. One at a time, replicas first, and the primary only after another
 * pod has taken its place.
 */

import type { Finding } from "../../projects/status.ts";
import type { Database } from "../database.ts";
import type { ClusterContext, ClusterState, LiveDatabase, LivePod } from "../driver.ts";
import { isOutdated, isReady, ordinalOf } from "./pods.ts";
import { deletePod } from "./steps.ts";

export const ROLLING_OUT = {
  reason: "RollingOut",
  message: "Instances are being replaced, one at a time.",
} as const satisfies Finding;

export const SWITCHING_OVER = {
  reason: "SwitchingOver",
  message: "Another instance takes over as primary.",
} as const satisfies Finding;

/** No instance is the primary: not yet, or not any more. */
export function primaryMissing({ bootstrapped }: Pick<Database, "bootstrapped">) {
  return bootstrapped
    ? ({ reason: "PrimaryMissing", message: "No instance takes writes." } as const)
    : ({ reason: "Bootstrapping", message: "The database is being set up." } as const);
}

export function replicasMissing(message: string): Finding {
  return { reason: "ReplicasMissing", message };
}

/** Replaces an outdated pod that does not work: it may be the reason why none is the primary. */
export async function replaceOutdatedPod(live: LiveDatabase, context: ClusterContext): Promise<void> {
  const step = nextRollStep(live, undefined, live.pods.length);
  if (step.kind === "delete") {
    await deletePod(step.pod, context);
  }
}

/** What differs between engines in a rolling update. */
export interface Rolling {
  /** Milliseconds until the next step. */
  pollMs: number;
  /** Starts a switchover to one of these. */
  handOver(from: LivePod, to: readonly LivePod[]): Promise<Partial<ClusterState>>;
  /** Called when every pod is up to date. */
  whenDone(): Partial<ClusterState>;
}

/** One step of the rolling update. */
export async function roll(
  { replicas, instances }: Pick<Database, "replicas" | "instances">,
  live: LiveDatabase,
  primary: LivePod,
  { pollMs, handOver, whenDone }: Rolling,
  context: ClusterContext,
): Promise<Partial<ClusterState>> {
  const step = nextRollStep(live, primary, replicas);
  switch (step.kind) {
    case "delete":
      await deletePod(step.pod, context);
      return { underWay: ROLLING_OUT, requeueAfterMs: pollMs };
    case "switchover": {
      // A pod that is to be stopped does not become the primary.
      const to = step.to.filter((pod) => ordinalOf(pod) < instances);
      return to.length > 0 ? handOver(step.from, to) : { underWay: ROLLING_OUT, requeueAfterMs: pollMs };
    }
    case "wait":
      return { underWay: ROLLING_OUT, requeueAfterMs: pollMs };
    case "done":
      return whenDone();
  }
}

export type RollStep =
  | { kind: "done" }
  /** A pod is being replaced. */
  | { kind: "wait" }
  | { kind: "delete"; pod: LivePod }
  /** Every replica is up to date: one of them is to take the primary's place. */
  | { kind: "switchover"; from: LivePod; to: readonly LivePod[] };

/**
 * The next step. Pure.
 * @param primary undefined where none is known
 * @param wanted how many pods are desired
 */
export function nextRollStep(live: LiveDatabase, primary: LivePod | undefined, wanted: number): RollStep {
  const { pods, statefulSet } = live;
  const { metadata, status } = statefulSet ?? {};
  const outdated = pods.filter((pod) => isOutdated(pod, live));
  if (outdated.length === 0) {
    return { kind: "done" };
  }
  // Its controller would create the pod from the template that it has observed.
  if ((status?.observedGeneration ?? 0) < (metadata?.generation ?? 0)) {
    return { kind: "wait" };
  }
  // A broken pod cannot get worse, and a change may repair it.
  const broken = newestFirst(outdated).find((pod) => !isReady(pod) && !pod.metadata.deletionTimestamp);
  if (broken && pods.every((pod) => !pod.metadata.deletionTimestamp)) {
    return { kind: "delete", pod: broken };
  }
  if (pods.length < wanted || !pods.every(isReady)) {
    return { kind: "wait" };
  }
  const replica = newestFirst(outdated).find((pod) => pod !== primary);
  if (replica && (primary || pods.length === 1)) {
    return { kind: "delete", pod: replica };
  }
  if (!primary) {
    return { kind: "wait" };
  }
  const to = pods.filter((pod) => pod !== primary);
  return to.length > 0 ? { kind: "switchover", from: primary, to } : { kind: "delete", pod: primary };
}

function newestFirst(pods: readonly LivePod[]): LivePod[] {
  return pods.toSorted((a, b) => ordinalOf(b) - ordinalOf(a));
}
