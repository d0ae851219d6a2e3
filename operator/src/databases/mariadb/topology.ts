/** Which member is the primary. Pure. */

import { roles } from "../common/metadata.ts";
import { hasRole, isReady, ordinalOf } from "../common/pods.ts";
import type { Relabelling } from "../common/steps.ts";
import type { LivePod } from "../driver.ts";
import { isServing, isSynced, type MemberState } from "./member-state.ts";

/** Pods and their states, without those that do not answer. */
export type MemberStates = ReadonlyMap<LivePod, MemberState>;

/**
 * Every member of the group could take writes; one of them does. It stays for as long as it serves: a change ends sessions.
 * Without it one that is ready for its Services already, then one that does not give a copy, then the first.
 */
export function choosePrimary(memberStates: MemberStates): LivePod | undefined {
  const worth = (pod: LivePod) => {
    const labelled = hasRole(pod, roles.primary);
    return [isReady(pod), labelled, isSynced(memberStates.get(pod)), -ordinalOf(pod)].map(Number);
  };
  return candidatesOf(memberStates).toSorted((a, b) => compare(worth(b), worth(a)))[0];
}

/** The labelled pod, if it is ready as far as the kubelet knows, and has not answered: it may only be slow. */
export function silentPrimary(pods: readonly LivePod[], memberStates: MemberStates): LivePod | undefined {
  return pods.find((pod) => hasRole(pod, roles.primary) && isReady(pod) && !memberStates.has(pod));
}

/** Members that can take the writes. */
export function candidatesOf(memberStates: MemberStates): LivePod[] {
  return [...memberStates].flatMap(([pod, facts]) =>
    isServing(facts) && !pod.metadata.deletionTimestamp ? [pod] : [],
  );
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [index, value] of a.entries()) {
    const other = b[index] ?? 0;
    if (value !== other) {
      return value - other;
    }
  }
  return 0;
}

/** Labels to change, in this order: a Service never has two primaries. */
export function relabelled(pods: readonly LivePod[], primary: LivePod | undefined): Relabelling[] {
  if (!primary) {
    return [];
  }
  const others = pods.filter(
    (pod) => pod !== primary && !hasRole(pod, roles.replica) && !pod.metadata.deletionTimestamp,
  );
  // A terminating pod still receives connections.
  const leaving = pods.filter(
    (pod) => pod !== primary && pod.metadata.deletionTimestamp && hasRole(pod, roles.primary),
  );
  return [
    ...[...others, ...leaving].map((pod) => ({ pod, role: roles.replica })),
    ...(hasRole(primary, roles.primary) ? [] : [{ pod: primary, role: roles.primary }]),
  ];
}
