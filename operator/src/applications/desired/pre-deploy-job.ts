import { annotations, labels } from "@slipway/crds";
import type { DesiredObject } from "../../desired.ts";
import { childMetadata } from "../../workload/app.ts";
import type { HttpApp } from "../app.ts";
import { commandLabels, commandPodSpec } from "./command-pod.ts";

/** Beyond the command's time: for a node to have room for its pod, and for a node that does not end it. */
const BACKSTOP_SECONDS = 300;

/** What runs before a deployment. */
export interface PreDeploy {
  /** Id of the deployment. */
  deploymentId: string;
  /** Hash of the version's template. */
  settingsHash: string;
  command: readonly string[];
  timeoutSeconds: number;
}

/** Name of a deployment's Job: the same one for each process that reconciles it. @param deploymentId `d` and hexadecimal digits */
export const preDeployJobName = (projectId: string, deploymentId: string): string =>
  `${projectId}-pre-deploy-${deploymentId.slice(1, 11)}`;

/**
 * The Job that runs a deployment's command, once. It carries no project's label, which would make its pod an instance. The kubelet ends it
 * in time, so that its pod stays with exit code and log.
 */
export function preDeployJob(app: HttpApp, run: PreDeploy): DesiredObject {
  const metadata = {
    labels: commandLabels(app, labels.preDeploy),
    annotations: { [annotations.settingsHash]: run.settingsHash },
  };
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { ...childMetadata(app), ...metadata, name: preDeployJobName(app.id, run.deploymentId) },
    spec: {
      backoffLimit: 0,
      podReplacementPolicy: "Failed",
      activeDeadlineSeconds: run.timeoutSeconds + BACKSTOP_SECONDS,
      template: {
        metadata,
        spec: {
          ...commandPodSpec(app, run.command),
          activeDeadlineSeconds: run.timeoutSeconds,
        },
      },
    },
  };
}
