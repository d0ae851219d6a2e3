import { API_VERSION, annotations, finalizers, type JobRun, labels } from "@slipway/crds";
import type { Job } from "../../jobs/runs/cluster.ts";
import { type CommandApp, commandLabels, commandPodSpec } from "./command-pod.ts";

/** Beyond the longest start and the run's own time: for the operator to stop it itself, after an outage too. */
const BACKSTOP_SECONDS = 600;

/** Times of a one-off run, in seconds. */
export interface OneOffTimes {
  /** From its container's start. */
  timeoutSeconds: number;
  /** In which its container must start. */
  startDeadlineSeconds: number;
}

/**
 * The Job of a one-off run, suspended: it keeps the image and the variables of the version that serves as it is created. Neither it nor its
 * pod carries the project's label, so that nothing takes the pod for an instance.
 */
export function oneOffJob(
  run: JobRun,
  app: CommandApp,
  { plan, settingsHash }: { plan: string; settingsHash: string },
  times: OneOffTimes,
): Job {
  const { name, namespace = "", uid = "" } = run.metadata;
  const own = commandLabels(app, labels.oneOffRun);
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: {
      name,
      namespace,
      labels: own,
      annotations: { [annotations.plan]: plan, [annotations.settingsHash]: settingsHash },
      ownerReferences: [{ apiVersion: API_VERSION, kind: "JobRun", name, uid, controller: true }],
    },
    spec: {
      suspend: true,
      // It is never tried again, and its pod is never replaced.
      backoffLimit: 0,
      podReplacementPolicy: "Failed",
      activeDeadlineSeconds: times.startDeadlineSeconds + times.timeoutSeconds + BACKSTOP_SECONDS,
      template: {
        // No pod is deleted before its run is charged.
        metadata: { labels: own, finalizers: [finalizers.jobRun] },
        spec: commandPodSpec(app, run.spec.command ?? []),
      },
    },
  } as Job;
}
