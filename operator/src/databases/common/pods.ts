/** What the pods of a database show. Pure. */

import { annotations, labels } from "@slipway/crds";
import type { LiveDatabase, LivePod } from "../driver.ts";
import { type Role, roles } from "./metadata.ts";
import { CONTAINER } from "./pod.ts";

/** The number at the end of a pod's name. */
export function ordinalOf({ metadata }: { metadata?: { name?: string } }): number {
  return Number(/-([0-9]+)$/.exec(metadata?.name ?? "")?.[1] ?? Number.NaN);
}

export function isReady({ metadata, status }: LivePod): boolean {
  return (
    !metadata.deletionTimestamp &&
    status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") === true
  );
}

export function hasRole({ metadata }: LivePod, role: Role): boolean {
  return metadata.labels?.[labels.role] === role;
}

/** The primary: the pod that is ready and has the label. Of two none, until one of them loses it. */
export function primaryOf({ pods }: Pick<LiveDatabase, "pods">): LivePod | undefined {
  const primaries = pods.filter((pod) => hasRole(pod, roles.primary) && isReady(pod));
  return primaries.length === 1 ? primaries[0] : undefined;
}

/** The primary, where it is one of the instances that the project requests. */
export function stayingPrimary(
  { instances }: { instances: number },
  live: Pick<LiveDatabase, "pods">,
): LivePod | undefined {
  const primary = primaryOf(live);
  return primary && ordinalOf(primary) < instances ? primary : undefined;
}

/** When the engine's container of a pod started; another time is another process. */
export function startOf({ status }: LivePod): string | undefined {
  return status?.containerStatuses?.find(({ name }) => name === CONTAINER)?.state?.running?.startedAt;
}

/** Identifies one run of a pod's container. */
export function processOf(pod: LivePod): string {
  return `${pod.metadata.uid ?? ""}/${startOf(pod) ?? ""}`;
}

/** Whether a pod was created from another template than the StatefulSet's. */
export function isOutdated({ metadata }: LivePod, { statefulSet }: LiveDatabase): boolean {
  const wanted = statefulSet?.spec?.template?.metadata?.annotations?.[annotations.settingsHash];
  return wanted !== undefined && metadata.annotations?.[annotations.settingsHash] !== wanted;
}
