/** Secrets that runs which have not ended are made from: their pods may still have to start. */

import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { liveChildren } from "../projects/deletion.ts";

/** The parts of a Job that are read here. */
export interface JobSecrets extends KubernetesObject {
  spec?: {
    template?: {
      spec?: {
        imagePullSecrets?: readonly { name?: string }[];
        containers?: readonly { envFrom?: readonly { secretRef?: { name?: string } }[] }[];
      };
    };
  };
  status?: { conditions?: readonly { type: string; status: string }[] };
}

/** Names of the Secrets that a job's runs may need yet, read live; none for a project of another type. */
export async function secretsOfRuns(
  project: Project,
  client: KubeClient,
  signal: AbortSignal,
): Promise<Set<string>> {
  if (project.spec.type !== "job") {
    return new Set();
  }
  const jobs: JobSecrets[] = await liveChildren(resources.jobs, project, client, signal);
  return new Set(jobs.filter((job) => !hasEnded(job)).flatMap(namesOf));
}

function hasEnded({ status }: JobSecrets): boolean {
  return (status?.conditions ?? []).some(
    ({ type, status: is }) => is === "True" && (type === "Complete" || type === "Failed"),
  );
}

function namesOf({ spec }: JobSecrets): string[] {
  const { imagePullSecrets = [], containers = [] } = spec?.template?.spec ?? {};
  const variables = containers.flatMap(({ envFrom = [] }) => envFrom.map(({ secretRef }) => secretRef?.name));
  return [...imagePullSecrets.map(({ name }) => name), ...variables].filter((name) => name !== undefined);
}
