/** Whether a namespace's quota bounds anything yet. */

import type { KubernetesObject } from "@slipway/kube";
import { equalQuantities } from "../runtime/index.ts";

/** The parts of a ResourceQuota that are read here. */
export interface Quota extends KubernetesObject {
  spec?: { hard?: Record<string, string> };
  status?: { hard?: Record<string, string>; used?: Record<string, string> };
}

/**
 * Whether everything that a quota is to bound has been counted. Until the quota controller of Kubernetes has taken its limits over, it
 * bounds nothing; until a kind is counted, which of a new one takes up to half a minute, its creations are refused. Pure.
 * @param hard the limits as they are asked for now
 */
export function isCounted(hard: Record<string, string>, { status }: Quota): boolean {
  return Object.entries(hard).every(
    ([what, most]) => equalQuantities(status?.hard?.[what], most) && status?.used?.[what] !== undefined,
  );
}
