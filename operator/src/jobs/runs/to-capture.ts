import { type JobRun, organizationOfNamespace } from "@slipway/crds";
import type { RunToCapture } from "./ports.ts";

/** What names a run's log; undefined outside of organizations' namespaces. Pure. */
export function toCapture({ metadata, spec }: JobRun, podName: string): RunToCapture | undefined {
  const { name, namespace = "" } = metadata;
  const organizationId = organizationOfNamespace(namespace);
  if (organizationId === undefined) {
    return undefined;
  }
  return {
    organizationId,
    namespace,
    projectId: spec.projectRef.name,
    runId: name,
    scheduledAt: new Date(spec.scheduledAt),
    podName,
  };
}
