import type { KubernetesObject } from "@slipway/controller-runtime";
import { fieldManagers, type Project, withFormerState } from "@slipway/crds";

interface ManagedFieldsEntry {
  manager?: string;
  time?: string;
  fieldsV1?: Record<string, unknown>;
}

/** They record the source's revision in the spec, and convert what earlier versions wrote: no change of what is wanted. */
const OPERATOR: readonly (string | undefined)[] = [fieldManagers.project, fieldManagers.build];

/**
 * When the spec was last changed: the newest `managedFields` entry that owns part of it and is not the operator's, or
 * `spec.updatedAt`, since Kubernetes records no time for a field that was only removed. Falls back to the creation.
 * @returns RFC 3339 with milliseconds, so that moments compare as text
 */
export function specUpdatedAt(project: Pick<Project, "metadata" | "spec">): string {
  const { metadata } = project;
  const entries = ((metadata as KubernetesObject["metadata"])?.managedFields ?? []) as ManagedFieldsEntry[];
  const changes = entries
    .filter(({ manager, fieldsV1 }) => fieldsV1?.["f:spec"] !== undefined && !OPERATOR.includes(manager))
    .map((entry) => entry.time);
  return [metadata.creationTimestamp, withFormerState(project).updatedAt, ...changes]
    .map(inMilliseconds)
    .reduce((latest, time) => (time > latest ? time : latest), "");
}

function inMilliseconds(moment: unknown): string {
  const time = new Date(typeof moment === "string" ? moment : Number.NaN);
  return Number.isNaN(time.getTime()) ? "" : time.toISOString();
}
