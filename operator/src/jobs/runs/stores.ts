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
  /** Jobs of runs. */
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

/** The project that a run's Job or pod is of; undefined for any other object. */
export function projectOfObject({ metadata }: KubernetesObject): ObjectRef | undefined {
  const { namespace, labels: own } = metadata ?? {};
  const name = own?.[labels.project] ?? own?.[labels.oneOffRun];
  return name === undefined ? undefined : { namespace, name };
}

const byProject = (object: KubernetesObject) => {
  const project = projectOfObject(object);
  return project ? [refKey(project)] : [];
};

/** Indexers of every store. */
export const indexers = {
  runs: { [BY_PROJECT]: (run: JobRun) => [refKey(projectOfRun(run))] },
  jobs: { [BY_PROJECT]: byProject },
  pods: { [BY_PROJECT]: byProject, [BY_JOB]: labelled(JOB_NAME) },
};

/** Jobs of runs, and their pods: those of applications carry another label for their project, so the type selects them. */
const OF_RUNS = `${labels.type} in (job,http,worker),!${labels.preDeploy}`;

/** Creates the stores that others do not have; their reflectors start with the manager. */
export function createJobRunStores(
  manager: Manager,
  others: Pick<JobRunStores, "projects" | "nodes">,
): JobRunStores {
  return {
    ...others,
    runs: manager.store<JobRun>(jobRunResource, { indexers: indexers.runs }),
    jobs: manager.store<Job>(resources.jobs, {
      labelSelector: OF_RUNS,
      indexers: indexers.jobs,
      transform: slimJob,
    }),
    pods: manager.store<RunPod>(resources.pods, {
      labelSelector: `${JOB_NAME},${OF_RUNS}`,
      indexers: indexers.pods,
      transform: slimRunPod,
    }),
  };
}
