/** The parts of a database's StatefulSet and pods that are the same for every engine. Pure. */

import { hashJson } from "@slipway/controller-runtime";
import { annotations } from "@slipway/crds";
import type { DesiredObject } from "../../desired.ts";
import { placementFields } from "../../placement.ts";
import { childLabels } from "../../workload/app.ts";
import { environmentFields } from "../../workload/container.ts";
import { type PodTemplate, stamped } from "../../workload/pod.ts";
import type { Database } from "../database.ts";
import { metadataOf, podLabels } from "./metadata.ts";

/** Name of the engine's container in every pod. */
export const CONTAINER = "database";

/** Name of the volume that is kept. */
export const DATA = "data";

/** A key of the credentials Secret as an environment variable. */
export function fromCredentials({ names }: Database, name: string, key: string) {
  return { name, valueFrom: { secretKeyRef: { name: names.credentials, key } } };
}

/** A field of the pod as an environment variable. */
export function fromPod(name: string, fieldPath: string) {
  return { name, valueFrom: { fieldRef: { fieldPath } } };
}

/** The engine's container without what only the engine knows: command, environment, ports, probes, mounts. */
export function containerFields(database: Database) {
  const { image, resources } = database;
  return {
    name: CONTAINER,
    image: image.image,
    // Also where a tag names it: a database comes back while its registry is away, or was never in one.
    imagePullPolicy: "IfNotPresent",
    ...environmentFields(database),
    resources,
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
      readOnlyRootFilesystem: true,
    },
  };
}

/** A folder that is empty when the pod starts. @param limit of what memory it may take, for one in memory */
export function emptyDir(name: string, mountPath: string, options: { memory?: string } = {}) {
  const { memory } = options;
  return {
    volume: { name, emptyDir: memory ? { medium: "Memory", sizeLimit: memory } : {} },
    mount: { name, mountPath },
  };
}

/** The certificate, its key and its authority, readable for the engine's group. */
export function tlsVolume({ names }: Database, mountPath: string) {
  return {
    volume: { name: "tls", secret: { secretName: names.tls, defaultMode: 0o440 } },
    mount: { name: "tls", mountPath, readOnly: true },
  };
}

/** The ConfigMap with the engine's files. @param items which of its keys are which files; every key is one without it */
export function configVolume(
  { names }: Database,
  mountPath: string,
  { name = "config", configMap = names.config, items }: ConfigSource = {},
) {
  return {
    volume: { name, configMap: { name: configMap, ...(items ? { items } : {}) } },
    mount: { name, mountPath, readOnly: true },
  };
}

interface ConfigSource {
  name?: string;
  configMap?: string;
  items?: readonly { key: string; path: string }[];
}

/** Where the engine keeps its data. A plan may keep nothing, as an engine of its own kind never does. */
export function dataVolume({ storage }: Database, mountPath: string): MountedVolume {
  return storage ? { mount: { name: DATA, mountPath } } : emptyDir(DATA, mountPath);
}

/** A volume as a container sees it. That of a StatefulSet's claims is none of the pod's own. */
export interface MountedVolume {
  volume?: object;
  mount: { name: string; mountPath: string; readOnly?: boolean };
}

export const mountsOf = (volumes: readonly MountedVolume[]) => volumes.map(({ mount }) => mount);
export const volumesOf = (volumes: readonly MountedVolume[]) => volumes.flatMap(({ volume }) => volume ?? []);

/**
 * What a pod may do, and where it runs.
 * @param graceSeconds that it has to stop
 * @param matchLabels of the pods that are spread over the nodes
 */
export function podFields(database: Database, graceSeconds: number, matchLabels = podLabels(database)) {
  const { uid, gid } = database.image;
  const labelSelector = { matchLabels };
  return {
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: graceSeconds,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: uid,
      runAsGroup: gid,
      fsGroup: gid,
      fsGroupChangePolicy: "OnRootMismatch",
      seccompProfile: { type: "RuntimeDefault" },
    },
    ...placementFields(database.placement),
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: "kubernetes.io/hostname",
        whenUnsatisfiable: "ScheduleAnyway",
        labelSelector,
      },
    ],
  };
}

/** Hash of the passwords of the platform's own accounts that a pod started with. */
const ACCOUNTS_HASH = "slipway.dev/accounts-hash";

/** Hash of the settings that an engine reads only at its start. */
export const PARAMETERS_HASH = "slipway.dev/parameters-hash";

/**
 * Labels of a pod, and annotations that make it outdated when it has to restart.
 * @param startedWith what the engine reads at its start alone
 */
export function podMetadata(database: Database, startedWith: unknown): PodTemplate["metadata"] {
  const { restartedAt, accountsHash } = database;
  return {
    labels: { ...childLabels(database), ...podLabels(database) },
    annotations: {
      ...(restartedAt === undefined ? {} : { [annotations.restartedAt]: restartedAt }),
      [ACCOUNTS_HASH]: accountsHash,
      [PARAMETERS_HASH]: hashJson(startedWith),
    },
  };
}

/**
 * The instances. The operator deletes outdated pods itself (`OnDelete`): which of them goes first, only the driver knows.
 */
export function databaseStatefulSet(database: Database, template: PodTemplate): DesiredObject {
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: metadataOf(database, database.names.main),
    spec: {
      serviceName: database.names.nodes,
      replicas: database.replicas,
      podManagementPolicy: "Parallel",
      revisionHistoryLimit: 3,
      updateStrategy: { type: "OnDelete" },
      persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain", whenScaled: "Retain" },
      selector: { matchLabels: podLabels(database) },
      template: stamped(template),
      ...claimTemplates(database),
    },
  };
}

/** @param wanted size of each volume, where it is not what the project requests */
export function claimTemplates(database: Database, wanted?: string) {
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
          resources: { requests: { storage: wanted ?? size } },
        },
      },
    ],
  };
}
