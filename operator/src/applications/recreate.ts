/**
 * Which version a project with a volume runs. Its instances stop before those of another version start, so nothing replaces
 * the serving one before its image is on the node, and a failed one is replaced by the last version that served. Pure.
 */

import { annotations, type Deployment, labels, type Project } from "@slipway/crds";
import type { DesiredObject } from "../desired.ts";
import { childLabels, childMetadata } from "../workload/app.ts";
import { confinementFields, imageFields, podFields } from "../workload/pod.ts";
import { type HttpApp, instanceSelector } from "./app.ts";
import type { PodView } from "./pod-problem.ts";

/** What the choice depends on. */
export interface RecreateState {
  /** Hash of all that the wanted version's pods are created from. */
  wanted: string;
  /** The same of the live Deployment; undefined without one. */
  live: string | undefined;
  paused: boolean;
  /** An instance is on a node: there is something to keep, and a node on which to pull. */
  isPlaced: boolean;
  /** The wanted version's image is on that node. */
  isPulled: boolean;
  /** The project's deployments, newest first. */
  deployments: readonly Deployment[];
}

/**
 * `wanted`: the version of the spec. `pull`: the live one, until the wanted version's image is on its node.
 * `live`: the live one, since the wanted version has failed. `previous`: the last one that succeeded, for the same reason.
 */
export type RecreateChoice = "wanted" | "pull" | "live" | "previous";

/** The version that the Deployment has now. */
export function chooseVersion(state: RecreateState): RecreateChoice {
  const { wanted, live, deployments } = state;
  const [newest] = deployments;
  const previous = previousVersion(deployments);
  if (previous && newest?.status === "failed" && newest.settingsHash === wanted) {
    return live === previous.settingsHash ? "live" : "previous";
  }
  const replaces = live !== undefined && live !== wanted && state.isPlaced && !state.paused;
  return replaces && !state.isPulled ? "pull" : "wanted";
}

/** The last deployment before the newest one that succeeded. */
export function previousVersion(deployments: readonly Deployment[]): Deployment | undefined {
  return deployments.slice(1).find(({ status }) => status === "succeeded");
}

/** The project with the settings of an earlier deployment, and the very image that ran then. */
export function withSettingsOf(project: Project, { settings, image: { digest } }: Deployment): Project {
  const { image, port, plan, paymentMode = project.spec.paymentMode, envsFrom } = settings;
  const { command, healthcheck, readiness, terminationGracePeriodSeconds } = settings;
  const pinned = image && digest ? { ...image, digest } : image;
  const spec = { ...project.spec, image: pinned, command, port, plan, paymentMode, envsFrom };
  const health = { healthcheck, readiness, terminationGracePeriodSeconds };
  return { ...project, spec: { ...spec, ...health, restartedAt: undefined } };
}

/** Whether an instance is on a node, and stays there. */
export function isPlaced({ metadata, status }: PodView): boolean {
  const scheduled = status?.conditions?.find(({ type }) => type === "PodScheduled");
  return !metadata.deletionTimestamp && scheduled?.status === "True";
}

/** No image has it, so nothing of an image is ever run: the kubelet pulls first, and then finds that it is not there. */
const NO_COMMAND = "/.slipway-image-pull";

/** The kubelet reports these only once it has the image. */
const AFTER_PULL: ReadonlySet<string> = new Set([
  "CreateContainerConfigError",
  "CreateContainerError",
  "RunContainerError",
]);

/** Whether the pod's node has the image. */
export function isPulled({ status }: PodView): boolean {
  const container = status?.containerStatuses?.find(({ name }) => name === "app");
  return Boolean(container?.imageID) || AFTER_PULL.has(container?.state?.waiting?.reason ?? "");
}

/** Name of the pod that pulls the image of a version. @param settingsHash of the version */
export const imagePullName = ({ id }: Pick<HttpApp, "id">, settingsHash: string): string =>
  `${id}-pull-${settingsHash.slice(0, 10)}`;

/**
 * A pod that has the image pulled on the node of the project's instances, with the same credentials and nothing mounted. It
 * carries no project's label, which would make it an instance.
 */
export function imagePullPod(app: HttpApp, settingsHash: string): DesiredObject {
  const bare = { ...app, volume: undefined };
  const { [labels.project]: project = "", ...rest } = childLabels(app);
  const term = { labelSelector: instanceSelector(app), topologyKey: "kubernetes.io/hostname" };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...childMetadata(app),
      name: imagePullName(app, settingsHash),
      labels: { ...rest, [labels.imagePull]: project },
      annotations: { [annotations.settingsHash]: settingsHash },
    },
    spec: {
      ...podFields(bare, 0),
      restartPolicy: "Never",
      containers: [
        {
          ...imageFields(bare),
          command: [NO_COMMAND],
          ...confinementFields(bare),
          // It requests no resources: a node that is full has to pull, too.
          resources: {
            requests: { cpu: "0", memory: "0", "ephemeral-storage": "0" },
            limits: { cpu: "100m", memory: "32Mi", "ephemeral-storage": "32Mi" },
          },
        },
      ],
      affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } },
    },
  };
}
