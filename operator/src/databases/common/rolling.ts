/**
 * Which pod is to be made anew next, when pods are made from something else than they should be: one at a time, replicas
 * first, and the primary only after another has taken its place. Pure.
 */

import type { LiveDatabase, LivePod } from "../driver.ts";
import { isOutdated, isReady, ordinalOf } from "./pods.ts";

export type RollStep =
  | { kind: "settled" }
  /** A pod is on its way. */
  | { kind: "wait" }
  | { kind: "delete"; pod: LivePod }
  /** Every replica is new: one of them is to take the primary's place. */
  | { kind: "switchover"; from: LivePod; to: readonly LivePod[] };

/**
 * @param primary the pod that takes writes, if one is known
 * @param wanted pods that there should be
 */
export function nextRollStep(live: LiveDatabase, primary: LivePod | undefined, wanted: number): RollStep {
  const { pods, statefulSet } = live;
  const { metadata, status } = statefulSet ?? {};
  const outdated = pods.filter((pod) => isOutdated(pod, live));
  if (outdated.length === 0) {
    return { kind: "settled" };
  }
  // Its controller would make the pod from what it has seen.
  if ((status?.observedGeneration ?? 0) < (metadata?.generation ?? 0)) {
    return { kind: "wait" };
  }
  // What does not work cannot get worse, and a change may be what heals it.
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
