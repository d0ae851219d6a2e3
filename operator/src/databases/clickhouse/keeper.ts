/** The Keepers of several servers: what these agree by. Pure. */

import { labels } from "@slipway/crds";
import type { DesiredObject } from "../../desired.ts";
import { COMPONENT, metadataOf } from "../common/metadata.ts";
import {
  auxiliaryContainer,
  CONTAINER,
  configVolume,
  dataVolume,
  emptyDir,
  envVar,
  fromPod,
  tlsVolume,
} from "../common/pod.ts";
import { readScript, renderScript } from "../common/scripts.ts";
import { headlessService } from "../common/services.ts";
import { disruptionBudgetOf, statefulSetOf } from "../common/stateful-set.ts";
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
  const selector = { [labels.project]: database.id, [COMPONENT]: "keeper" };
  return [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: metadataOf(database, name),
      data: { "keeper_config.yaml": keeperFile(database) },
    },
    headlessService(database, PORTS, { name, selector }),
    keeperSet(database, name, selector),
    disruptionBudgetOf(database, name, selector),
  ];
}

function keeperSet(database: Database, name: string, matchLabels: Record<string, string>): DesiredObject {
  const volumes = [
    emptyDir("tmp", "/tmp"),
    tlsVolume(database, paths.tls),
    configVolume(database, paths.keeperConfig, { configMap: name }),
    dataVolume(database, paths.data),
  ];
  const container = auxiliaryContainer(database, CONTAINER, RESOURCES, {
    command: ["/bin/sh", "-c", START],
    workingDir: "/tmp",
    env: [envVar("HOME", "/tmp"), fromPod("SLIPWAY_POD", "metadata.name")],
    ports: PORTS,
    startupProbe: { ...listens, periodSeconds: 2, failureThreshold: 300 },
    livenessProbe: { ...listens, periodSeconds: 10, failureThreshold: 6 },
    readinessProbe: { ...listens, periodSeconds: 3, failureThreshold: 2 },
    volumes,
  });
  return statefulSetOf(database, {
    name,
    serviceName: name,
    replicas: database.paused ? 0 : KEEPERS,
    matchLabels,
    updateStrategy: { type: "RollingUpdate" },
    // A replaced Keeper has to rejoin the others before the next one is stopped.
    minReadySeconds: 15,
    readAtStart: keeperFile(database),
    stopSeconds: 30,
    containers: [container],
    volumes,
    volumeSize: VOLUME_SIZE,
  });
}

const START = renderScript(readScript(new URL("scripts/start-keeper.sh", import.meta.url)), {
  KEEPER_CONFIG: paths.keeperConfig,
}).trimEnd();

const listens = { tcpSocket: { port: "keeper" } };
