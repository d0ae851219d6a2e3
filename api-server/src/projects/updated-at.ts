import { annotations } from "@slipway/crds";
import type { KubernetesObject } from "@slipway/kube";

interface ManagedFieldsEntry {
  time?: string;
  fieldsV1?: Record<string, unknown>;
}

/**
 * When the spec was last changed, by whomever: the newest `managedFields` entry that owns part of it, or the note that
 * `/v1` leaves, since Kubernetes takes no time down for what only removes a field. Falls back to the creation.
 * @returns RFC 3339 with milliseconds, so that moments compare as text
 */
export function specUpdatedAt({ metadata }: KubernetesObject): string {
  const entries = (metadata?.managedFields ?? []) as ManagedFieldsEntry[];
  const changes = entries
    .filter((entry) => entry.fieldsV1?.["f:spec"] !== undefined)
    .map((entry) => entry.time);
  return [metadata?.creationTimestamp, metadata?.annotations?.[annotations.updatedAt], ...changes]
    .map(inMilliseconds)
    .reduce((latest, time) => (time > latest ? time : latest), "");
}

function inMilliseconds(moment: unknown): string {
  const time = new Date(typeof moment === "string" ? moment : Number.NaN);
  return Number.isNaN(time.getTime()) ? "" : time.toISOString();
}
