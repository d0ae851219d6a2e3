/** What the jobrun controller watches. */

import {
  type KubernetesObject,
  type Manager,
  type ObjectRef,
  refKey,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import { type JobRun, labels, type Project } from "@slipway/crds";
import { jobRunResource } from "../../resources.ts";
import { JOB_NAME, type Job, type RunNode, type RunPod, slimJob, slimRunPod } from "./cluster.ts";

export interface JobRunStores {
  projects: Store<Project>;
  runs: Store<JobRun>;
  /** Jobs of projects. */
  jobs: Store<Job>;
  /** Pods of those Jobs. */
  pods: Store<RunPod>;
  nodes: Store<RunNode>;
}

/** Index by `namespace/project`. */
export const BY_PROJECT = "project";
/** Index of pods by `namespace/job`. */
export const BY_JOB = "job";

const labelled = (label: string) => (object: KubernetesObject) => {
  const { namespace, labels: own } = object.metadata ?? {};
  const name = own?.[label];
  return name === undefined ? [] : [refKey({ namespace, name })];
};

/** The project that a run names. */
export const projectOfRun = ({ metadata, spec }: JobRun): ObjectRef => ({
  namespace: metadata.namespace,
  name: spec.projectRef.name,
});

/** Indexers of every store. */
export const indexers = {
  runs: { [BY_PROJECT]: (run: JobRun) => [refKey(projectOfRun(run))] },
  jobs: { [BY_PROJECT]: labelled(labels.project) },
  pods: { [BY_PROJECT]: labelled(labels.project), [BY_JOB]: labelled(JOB_NAME) },
};

/** Creates the stores that others do not have; their reflectors start with the manager. */
export function createJobRunStores(
  manager: Manager,
  others: Pick<JobRunStores, "projects" | "nodes">,
): JobRunStores {
  return {
    ...others,
    runs: manager.store<JobRun>(jobRunResource, { indexers: indexers.runs }),
    jobs: manager.store<Job>(resources.jobs, {
      labelSelector: labels.project,
      indexers: indexers.jobs,
      transform: slimJob,
    }),
    pods: manager.store<RunPod>(resources.pods, {
      labelSelector: `${labels.project},${JOB_NAME}`,
      indexers: indexers.pods,
      transform: slimRunPod,
    }),
  };
}
