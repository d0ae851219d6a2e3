import type { KubernetesObject } from "@slipway/kube";

interface ManagedFieldsEntry {
  time?: string;
  fieldsV1?: Record<string, unknown>;
}

/**
 * When the spec was last changed, by whomever: the newest `managedFields` entry that owns part of it. Kubernetes keeps
 * no such time itself. Falls back to the creation.
 */
export function specUpdatedAt(object: KubernetesObject): string {
  const created = String(object.metadata?.creationTimestamp ?? "");
  const entries = (object.metadata?.managedFields ?? []) as ManagedFieldsEntry[];
  return entries
    .filter((entry) => entry.fieldsV1?.["f:spec"] !== undefined)
    .map((entry) => entry.time ?? "")
    .reduce((latest, time) => (time > latest ? time : latest), created);
}
