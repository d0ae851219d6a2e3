/**
 * Which server is the primary. All servers accept writes and have the same data before long; clients see what they wrote
 * immediately because they are routed to one. Pure.
 */

import { roles } from "../common/metadata.ts";
import { hasRole, isReady, ordinalOf } from "../common/pods.ts";
import type { Relabelling } from "../common/steps.ts";
import type { LivePod } from "../driver.ts";

/**
 * The server that clients are routed to: the previous one for as long as it serves and is requested, else the first of those
 * that are.
 * @param instances that the project requests
 */
export function choosePrimary(pods: readonly LivePod[], instances: number): LivePod | undefined {
  const serving = pods.filter((pod) => isReady(pod));
  const staying = serving.filter((pod) => ordinalOf(pod) < instances);
  const candidates = staying.length > 0 ? staying : serving;
  return candidates.find((pod) => hasRole(pod, roles.primary)) ?? candidates[0];
}

/** Labels to change: pods that lose the role first. */
export function relabelled(pods: readonly LivePod[], primary: LivePod | undefined): Relabelling[] {
  return pods
    .filter(({ metadata }) => !metadata.deletionTimestamp)
    .map((pod) => ({ pod, role: pod === primary ? roles.primary : roles.replica }))
    .filter(({ pod, role }) => !hasRole(pod, role))
    .toSorted((a, b) => Number(a.role === roles.primary) - Number(b.role === roles.primary));
}
