/** StatefulSets of a database's pods, and what keeps drained nodes from stopping these: the same for every engine. Pure. */

import { hashJson, type KubernetesObject } from "@slipway/controller-runtime";
import { annotations } from "@slipway/crds";
import { z } from "zod";
import type { DesiredObject } from "../../desired.ts";
import { childLabels, placementFields } from "../../workload/app.ts";
import { stamped } from "../../workload/pod.ts";
import type { Database } from "../database.ts";
import type { DatabaseImage } from "../settings.ts";
import { metadataOf, podLabels } from "./metadata.ts";
import { type ContainerSpec, DATA, engineContainer, type MountedVolume } from "./pod.ts";

/** Hash of the passwords of the platform's own accounts that a pod started with. */
const ACCOUNTS_HASH = "slipway.dev/accounts-hash";

/** Features of the template's image: on the StatefulSet alone, as another template would replace pods. */
const IMAGE_FEATURES = "slipway.dev/image-features";

/** Hash of the settings that an engine reads only at its start. */
const PARAMETERS_HASH = "slipway.dev/parameters-hash";

/** What differs between StatefulSets. */
export interface PodSet {
  name: string;
  serviceName: string;
  replicas: number;
  matchLabels: Record<string, string>;
  updateStrategy: { type: "OnDelete" | "RollingUpdate" };
  minReadySeconds?: number;
  annotations?: Record<string, string>;
  /** What its containers read at their start alone: a pod that has read something else is outdated. */
  readAtStart: unknown;
  /** Seconds that they have to stop. */
  stopSeconds: number;
  containers: readonly object[];
  volumes: readonly MountedVolume[];
  /** Other fields of the pod. */
  pod?: object;
  /** Size of each volume, where it is not what the project requests. */
  volumeSize?: string;
}

/** What differs between engines in their instances. */
export interface Instances extends Pick<PodSet, "readAtStart" | "stopSeconds" | "pod"> {
  container: ContainerSpec;
  /** Containers beside it, and volumes that only they mount. */
  sidecars?: readonly object[];
  sidecarVolumes?: readonly MountedVolume[];
}

/** The instances. The operator deletes outdated pods itself (`OnDelete`): which of them is first, only the driver knows. */
export function databaseStatefulSet(database: Database, instances: Instances): DesiredObject {
  const { restartedAt, accountsHash, names, replicas } = database;
  const { container, sidecars = [], sidecarVolumes = [], ...rest } = instances;
  const set = statefulSetOf(database, {
    ...rest,
    name: names.main,
    serviceName: names.nodes,
    replicas,
    matchLabels: podLabels(database),
    updateStrategy: { type: "OnDelete" },
    annotations: {
      ...(restartedAt === undefined ? {} : { [annotations.restartedAt]: restartedAt }),
      [ACCOUNTS_HASH]: accountsHash,
    },
    containers: [engineContainer(database, container), ...sidecars],
    volumes: [...container.volumes, ...sidecarVolumes],
  });
  const features = recordedFeatures(database.image);
  return features === undefined
    ? set
    : { ...set, metadata: { ...set.metadata, annotations: { [IMAGE_FEATURES]: features } } };
}

/** What is recorded of an image's features; undefined where all are as the contract has them. */
const recordedFeatures = ({ features }: Database["image"]): string | undefined => {
  const entries = Object.entries(features).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.length === 0 ? undefined : JSON.stringify(Object.fromEntries(entries));
};

/** Features of the image that a StatefulSet's template has, as they were recorded. @returns undefined where none were */
export function imageFeatures(
  set: Pick<KubernetesObject, "metadata">,
): DatabaseImage["features"] | undefined {
  const recorded = set.metadata?.annotations?.[IMAGE_FEATURES];
  if (recorded === undefined) {
    return undefined;
  }
  // It can have been edited by hand.
  const parsed = z.record(z.string(), z.boolean()).safeParse(parseJson(recorded));
  return parsed.data;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** All pods start at the same time: members need each other before they are ready. */
export function statefulSetOf(database: Database, set: PodSet): DesiredObject {
  const { name, serviceName, replicas, matchLabels, updateStrategy, minReadySeconds } = set;
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: metadataOf(database, name),
    spec: {
      serviceName,
      replicas,
      podManagementPolicy: "Parallel",
      revisionHistoryLimit: 3,
      updateStrategy,
      minReadySeconds,
      persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain", whenScaled: "Retain" },
      selector: { matchLabels },
      template: stamped({
        metadata: {
          labels: { ...childLabels(database), ...matchLabels },
          annotations: { ...set.annotations, [PARAMETERS_HASH]: hashJson(set.readAtStart) },
        },
        spec: podSpec(database, set),
      }),
      ...claimTemplates(database, set.volumeSize),
    },
  };
}

/** What a pod may do, where it runs, and what runs in it. */
function podSpec({ image, placement }: Database, set: PodSet) {
  const { matchLabels, stopSeconds, pod, containers, volumes } = set;
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: stopSeconds,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: image.uid,
      runAsGroup: image.gid,
      fsGroup: image.gid,
      fsGroupChangePolicy: "OnRootMismatch",
      seccompProfile: { type: "RuntimeDefault" },
    },
    ...placementFields(placement),
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: "kubernetes.io/hostname",
        whenUnsatisfiable: "ScheduleAnyway",
        labelSelector: { matchLabels },
      },
    ],
    ...pod,
    containers,
    volumes: volumes.flatMap(({ volume }) => volume ?? []),
  };
}

function claimTemplates(database: Database, volumeSize: string | undefined) {
  if (!database.storage) {
    return {};
  }
  const { size, storageClass } = database.storage.template;
  return {
    volumeClaimTemplates: [
      {
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        metadata: { name: DATA, labels: childLabels(database) },
        spec: {
          accessModes: ["ReadWriteOnce"],
          ...(storageClass ? { storageClassName: storageClass } : {}),
          resources: { requests: { storage: volumeSize ?? size } },
        },
      },
    ],
  };
}

/** Keeps drained nodes from stopping more than one instance at a time; for one instance it would only block the drain. */
export function podDisruptionBudget(database: Database): DesiredObject | undefined {
  const { names, replicas } = database;
  return replicas < 2 ? undefined : disruptionBudgetOf(database, names.main, podLabels(database));
}

export function disruptionBudgetOf(
  database: Database,
  name: string,
  matchLabels: Record<string, string>,
): DesiredObject {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: metadataOf(database, name),
    spec: { maxUnavailable: 1, selector: { matchLabels } },
  };
}
