/** The Keepers of several servers: what these agree by. Their own small resources are beside what is sold. Pure. */

import { hashJson } from "@slipway/controller-runtime";
import { labels } from "@slipway/crds";
import type { DesiredObject } from "../../desired.ts";
import { childLabels } from "../../workload/app.ts";
import { stamped } from "../../workload/pod.ts";
import { COMPONENT, metadataOf } from "../common/metadata.ts";
import {
  CONTAINER,
  claimTemplates,
  configVolume,
  containerFields,
  dataVolume,
  emptyDir,
  mountsOf,
  PARAMETERS_HASH,
  podFields,
  tlsVolume,
  volumesOf,
} from "../common/pod.ts";
import { readScript, renderScript } from "../common/scripts.ts";
import type { Database } from "../database.ts";
import { keeperFile } from "./config.ts";
import { KEEPER_PORT, KEEPERS, keeperName, paths, RAFT_PORT } from "./names.ts";

/** Everything that is agreed on, with its log; it hardly grows with the data. */
const VOLUME_SIZE = "2Gi";

const RESOURCES = {
  requests: { cpu: "10m", memory: "96Mi" },
  limits: { cpu: "500m", memory: "512Mi" },
};

const PORTS = [
  { name: "keeper", port: KEEPER_PORT },
  { name: "raft", port: RAFT_PORT },
];

/** In the order in which they are applied. */
export function keepers(database: Database): DesiredObject[] {
  const name = keeperName(database);
  const metadata = metadataOf(database, name);
  const selector = { [labels.project]: database.id, [COMPONENT]: "keeper" };
  return [
    { apiVersion: "v1", kind: "ConfigMap", metadata, data: { "keeper_config.yaml": keeperFile(database) } },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: {
        type: "ClusterIP",
        clusterIP: "None",
        // They find each other before any of them is ready.
        publishNotReadyAddresses: true,
        selector,
        ports: PORTS.map(({ name, port }) => ({ name, port, targetPort: name, protocol: "TCP" })),
      },
    },
    keeperSet(database, selector),
    {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata,
      spec: { maxUnavailable: 1, selector: { matchLabels: selector } },
    },
  ];
}

function keeperSet(database: Database, selector: Record<string, string>): DesiredObject {
  const name = keeperName(database);
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: metadataOf(database, name),
    spec: {
      serviceName: name,
      replicas: database.paused ? 0 : KEEPERS,
      // Two of them are needed before any is ready.
      podManagementPolicy: "Parallel",
      revisionHistoryLimit: 3,
      updateStrategy: { type: "RollingUpdate" },
      // A replaced Keeper has to rejoin the others before the next one is stopped.
      minReadySeconds: 15,
      persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain", whenScaled: "Retain" },
      selector: { matchLabels: selector },
      template: keeperTemplate(database, selector),
      ...claimTemplates(database, VOLUME_SIZE),
    },
  };
}

const START = renderScript(readScript(new URL("scripts/start-keeper.sh", import.meta.url)), {
  KEEPER_CONFIG: paths.keeperConfig,
}).trimEnd();

const listens = { tcpSocket: { port: "keeper" } };

function keeperTemplate(database: Database, selector: Record<string, string>) {
  const { image, imagePullPolicy, securityContext } = containerFields(database);
  const volumes = [
    emptyDir("tmp", "/tmp"),
    tlsVolume(database, paths.tls),
    configVolume(database, paths.keeperConfig, { configMap: keeperName(database) }),
    dataVolume(database, paths.data),
  ];
  return stamped({
    metadata: {
      labels: { ...childLabels(database), ...selector },
      annotations: { [PARAMETERS_HASH]: hashJson(keeperFile(database)) },
    },
    spec: {
      ...podFields(database, 30, selector),
      containers: [
        {
          name: CONTAINER,
          image,
          imagePullPolicy,
          securityContext,
          resources: RESOURCES,
          command: ["/bin/sh", "-c", START],
          workingDir: "/tmp",
          env: [
            { name: "HOME", value: "/tmp" },
            { name: "SLIPWAY_POD", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
          ],
          ports: PORTS.map(({ name, port }) => ({ name, containerPort: port, protocol: "TCP" })),
          startupProbe: { ...listens, periodSeconds: 2, failureThreshold: 300 },
          livenessProbe: { ...listens, periodSeconds: 10, failureThreshold: 6 },
          readinessProbe: { ...listens, periodSeconds: 3, failureThreshold: 2 },
          volumeMounts: mountsOf(volumes),
        },
      ],
      volumes: volumesOf(volumes),
    },
  });
}
