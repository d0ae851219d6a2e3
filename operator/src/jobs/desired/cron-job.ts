import { annotations, finalizers } from "@slipway/crds";
import type { DesiredObject } from "../../desired.ts";
import { childLabels, childMetadata } from "../../workload/app.ts";
import {
  confinementFields,
  environmentFields,
  hashOfTemplate,
  imageFields,
  literalWord,
  type PodTemplate,
  podFields,
  stamped,
  templateMetadata,
  volumeFields,
} from "../../workload/pod.ts";
import type { JobApp } from "./app.ts";

/** Seconds after an occurrence in which its Job may still be created. */
const STARTING_DEADLINE_SECONDS = 120;

/** Seconds that a run which is stopped has to end on its own. */
const STOP_SECONDS = 30;

/** Beyond the longest start and the longest run: time for the operator to stop the run itself, after an outage too. */
const BACKSTOP_SECONDS = 10 * 60;

/** Ended Jobs that Kubernetes leaves: the operator deletes each once its run is charged. */
const HISTORY = 10;

/**
 * Creates a suspended Job for each occurrence of the schedule. The controller of runs decides whether it is admitted: nothing
 * in here starts a container.
 */
export function cronJob(app: JobApp): DesiredObject {
  return {
    apiVersion: "batch/v1",
    kind: "CronJob",
    metadata: childMetadata(app),
    spec: {
      schedule: app.cron,
      timeZone: "Etc/UTC",
      concurrencyPolicy: "Forbid",
      startingDeadlineSeconds: STARTING_DEADLINE_SECONDS,
      suspend: app.suspended,
      successfulJobsHistoryLimit: HISTORY,
      failedJobsHistoryLimit: HISTORY,
      jobTemplate: {
        metadata: { labels: childLabels(app), annotations: { [annotations.plan]: app.plan } },
        spec: {
          suspend: true,
          // A run is never tried again, and its pod is never replaced.
          backoffLimit: 0,
          podReplacementPolicy: "Failed",
          activeDeadlineSeconds: app.startDeadlineSeconds + app.runLimitSeconds + BACKSTOP_SECONDS,
          template: stamped(podTemplate(app)),
        },
      },
    },
  };
}

/** The pod of a run. Nothing that only the schedule or a pause changes may be in it. */
function podTemplate(app: JobApp): PodTemplate {
  return {
    // No pod is deleted before its run is charged.
    metadata: { ...templateMetadata(app), finalizers: [finalizers.jobRun] },
    spec: {
      ...podFields(app, STOP_SECONDS),
      restartPolicy: "Never",
      containers: [container(app)],
      ...volumeFields(app),
    },
  };
}

/** Hash of the template of runs: another one is another deployment. */
export function settingsHash(app: JobApp): string {
  return hashOfTemplate(podTemplate(app));
}

function container(app: JobApp) {
  return {
    ...imageFields(app),
    ...(app.command.length > 0 ? { command: app.command.map(literalWord) } : {}),
    ...(app.args.length > 0 ? { args: app.args.map(literalWord) } : {}),
    ...environmentFields(app),
    resources: app.resources,
    ...confinementFields(app),
  };
}
