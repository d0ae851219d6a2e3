/** The parts of a pod and its template that are the same for every type of project. */

import { hashJson } from "@slipway/controller-runtime";
import { annotations } from "@slipway/crds";
import { placementFields } from "../placement.ts";
import { childLabels, type Workload } from "./app.ts";

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
