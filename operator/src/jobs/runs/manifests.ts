/** The objects that the controller creates. Pure. */

import type { OwnerReference } from "@slipway/controller-runtime";
import {
  API_VERSION,
  annotations,
  finalizers,
  type JobRun,
  jobRunName,
  labels,
  MANAGED_BY,
  organizationOfNamespace,
  type Project,
} from "@slipway/crds";
import { type CronJob, type Job, SCHEDULED_TIMESTAMP } from "./cluster.ts";
import type { Pricing } from "./status.ts";

type Trigger = JobRun["spec"]["trigger"];

/** The JobRun of an occurrence. */
export function newRun(project: Project, name: string, trigger: Trigger, scheduledAt: Date): JobRun {
  return {
    apiVersion: API_VERSION,
    kind: "JobRun",
    metadata: { name, namespace: project.metadata.namespace, ...runMetadata(project) },
    spec: { projectRef: { name: project.metadata.name }, trigger, scheduledAt: scheduledAt.toISOString() },
  };
}

/** Labels, finalizer and owner of a project's runs. */
export function runMetadata(project: Project) {
  const { name, namespace = "", uid = "" } = project.metadata;
  const organization = organizationOfNamespace(namespace);
  return {
    labels: {
      [labels.managedBy]: MANAGED_BY,
      [labels.project]: name,
      [labels.type]: project.spec.type,
      ...(organization === undefined ? {} : { [labels.organization]: organization }),
    },
    finalizers: [finalizers.jobRun],
    ownerReferences: [
      { apiVersion: API_VERSION, kind: "Project", name, uid, controller: true },
    ] satisfies OwnerReference[],
  };
}

/** The Job of a manual run: what the schedule would run, suspended until its admission. */
export function newJob(run: JobRun, { spec: { jobTemplate } }: CronJob): Job {
  const { name, namespace = "", uid = "" } = run.metadata;
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: {
      name,
      namespace,
      labels: jobTemplate.metadata?.labels,
      annotations: jobTemplate.metadata?.annotations,
      ownerReferences: [{ apiVersion: API_VERSION, kind: "JobRun", name, uid, controller: true }],
    },
    spec: { ...jobTemplate.spec, suspend: true },
  };
}

/** Unsuspends a Job, and annotates it with its pricing. */
export function admissionPatch(job: Job, { plan, pricePerMinute }: Omit<Pricing, "admittedAt">, now: Date) {
  return {
    metadata: {
      finalizers: [...new Set([...(job.metadata.finalizers ?? []), finalizers.jobRun])],
      annotations: {
        [annotations.plan]: plan,
        [annotations.pricePerMinute]: pricePerMinute,
        [annotations.admittedAt]: now.toISOString(),
      },
    },
    spec: { suspend: false },
  };
}

/** The minute for which the controller-manager created a Job of this project; undefined for any other Job. */
export function scheduledAtOf({ metadata }: Job, projectId: string): Date | undefined {
  const at = new Date(metadata.annotations?.[SCHEDULED_TIMESTAMP] ?? Number.NaN);
  return Number.isNaN(at.getTime()) || jobRunName(projectId, at) !== metadata.name ? undefined : at;
}

/** Trigger and time of a run, from its name, or from the Job where the name has neither. */
export function identifyRun(
  name: string,
  projectId: string,
  job: Job | undefined,
): { trigger: Trigger; scheduledAt: Date } {
  const rest = name.startsWith(`${projectId}-`) ? name.slice(projectId.length + 1) : "";
  const minute = /^([0-9]{1,12})(-[a-z0-9]+)?$/.exec(rest);
  if (minute) {
    const trigger = minute[2] === undefined ? "schedule" : "manual";
    return { trigger, scheduledAt: new Date(Number(minute[1]) * 60_000) };
  }
  const { annotations: marks, creationTimestamp } = job?.metadata ?? {};
  return {
    trigger: "manual",
    scheduledAt: new Date(marks?.[annotations.admittedAt] ?? creationTimestamp ?? 0),
  };
}
