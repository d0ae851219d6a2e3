/** The parts of a pod and its template that are the same for every type of project. */

import { hashJson } from "@slipway/controller-runtime";
import { annotations, BUILDS_PULL_SECRET } from "@slipway/crds";
import { childLabels, placementFields, type Workload } from "./app.ts";
import { since } from "./template-version.ts";

/** Group that owns the files of a volume, so that images which do not run as root can write to it. */
const VOLUME_GROUP = 10_001;

/** A pod's template. */
export interface PodTemplate {
  metadata: {
    labels: Record<string, string>;
    annotations: Record<string, string>;
    finalizers?: readonly string[];
  };
  spec: object;
}

/** Labels of a pod, and the annotation that changes when the same settings are to be deployed again. */
export function templateMetadata(app: Workload): PodTemplate["metadata"] {
  const { restartedAt } = app;
  return {
    labels: childLabels(app),
    annotations: restartedAt === undefined ? {} : { [annotations.restartedAt]: restartedAt },
  };
}

/** What a pod may do, how long it has to stop, and who may pull its image. */
export function podFields(app: Workload, graceSeconds: number) {
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: graceSeconds,
    securityContext: {
      seccompProfile: { type: "RuntimeDefault" },
      ...(app.volume ? { fsGroup: VOLUME_GROUP, fsGroupChangePolicy: "OnRootMismatch" } : {}),
    },
    ...placementFields(app.placement),
    ...(app.pullSecret ? { imagePullSecrets: [{ name: app.pullSecret }] } : {}),
  };
}

/** The project's volume, by the name that its containers mount. */
export function volumeFields({ id, volume }: Workload) {
  return volume ? { volumes: [{ name: "data", persistentVolumeClaim: { claimName: id } }] } : {};
}

/** Hash of a pod's template: another one is another deployment. */
export function hashOfTemplate(template: PodTemplate): string {
  return hashJson(template);
}

/** The template as it is applied: its pods carry the hash of their settings. */
export function stamped({ metadata, spec }: PodTemplate): PodTemplate {
  const hash = hashOfTemplate({ metadata, spec });
  const marked = { ...metadata.annotations, [annotations.settingsHash]: hash };
  return { metadata: { ...metadata, annotations: marked }, spec };
}

/** Which image runs, under the name by which its container is found. */
export function imageFields(workload: Workload) {
  const { image } = workload;
  return {
    name: "app",
    image,
    imagePullPolicy: isOwnBuild(workload) ? "IfNotPresent" : "Always",
    // The last lines of a container that fails are in its status.
    ...since(2, workload, { terminationMessagePolicy: "FallbackToLogsOnError" }),
  };
}

/**
 * A tag may have moved by now, and an image that a node has for one organization must not run for another, by digest neither:
 * the registry is queried each time, with the project's own credentials. What the platform built for the organization needs no
 * query, and starts while the platform's registry is unavailable: nobody else may name it (`refuseForeignBuild`).
 */
function isOwnBuild({ image, organizationId, pullSecret }: Workload): boolean {
  const repository = image.slice(image.indexOf("/") + 1);
  const isOwn = pullSecret === BUILDS_PULL_SECRET && repository.startsWith(`${organizationId}/`);
  return isOwn && image.includes("@sha256:");
}

/** Values from Secrets stay literal: Kubernetes expands $(NAME) in `env` only. */
export function environmentFields({ envSecrets }: Pick<Workload, "envSecrets">) {
  return envSecrets.length > 0 ? { envFrom: envSecrets.map((name) => ({ secretRef: { name } })) } : {};
}

/** A word of a command. Kubernetes makes the value of NAME of `$(NAME)`, and one `$` of two: words are to stay as they are. */
export function literalWord(word: string): string {
  return word.replaceAll("$", "$$$$");
}

/** What runs in place of the image's own command; nothing where that runs. */
export function commandFields(command: readonly string[] | undefined) {
  return command === undefined ? {} : { command: command.map(literalWord) };
}

/** What the container may do, and where its volume is. */
export function confinementFields({ volume }: Workload) {
  return {
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: {
        drop: ["ALL"],
        // What images that start as root need to own their files, bind port 80 and become another user.
        add: ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"],
      },
    },
    ...(volume ? { volumeMounts: [{ name: "data", mountPath: volume.mountPath }] } : {}),
  };
}
