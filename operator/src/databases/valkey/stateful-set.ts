import { credentialKeys } from "@slipway/crds";
import type { DesiredObject } from "../../desired.ts";
import {
  auxiliaryContainer,
  configVolume,
  dataVolume,
  emptyDir,
  envVar,
  fromCredentials,
  fromPod,
  type MountedVolume,
  SYSTEM_PATH,
  tlsVolume,
} from "../common/pod.ts";
import { databaseStatefulSet } from "../common/stateful-set.ts";
import type { Database } from "../database.ts";
import { files } from "./config.ts";
import { CLIENT_PORTS, nodeAddress, nodeAddresses, paths, SENTINEL_PORT, sizeOf } from "./names.ts";

/** Seconds that a server has to be replaced as the primary, to hand its last writes to its replicas, and to write its files. */
const STOP_SECONDS = 60;

/** The container of a pod's Sentinel. */
const SENTINEL = "sentinel";

/** The instances, each with a Sentinel beside it where a service has several. */
export function statefulSet(database: Database): DesiredObject {
  const run = emptyDir("run", paths.run, { memory: "4Mi" });
  const sentinelRun = emptyDir("sentinel", paths.run, { memory: "4Mi" });
  const shared = [
    emptyDir("tmp", "/tmp"),
    tlsVolume(database, paths.tls),
    configVolume(database, paths.config),
    dataVolume(database, paths.volume),
  ];
  const several = sizeOf(database) > 1;
  return databaseStatefulSet(database, {
    readAtStart: files(database),
    stopSeconds: STOP_SECONDS,
    container: {
      command: ["/bin/sh", `${paths.config}/start.sh`],
      workingDir: "/tmp",
      env: environment(database),
      ports: CLIENT_PORTS,
      ...probes,
      ...(several ? { lifecycle: { preStop: script("stop.sh") } } : {}),
      volumes: [run, ...shared],
    },
    sidecars: several ? [sentinel(database, [sentinelRun, ...shared])] : [],
    sidecarVolumes: several ? [sentinelRun] : [],
  });
}

function sentinel(database: Database, volumes: readonly MountedVolume[]) {
  const { replication } = credentialKeys;
  const resources = {
    // One that does not get its turn for 2 s does nothing at all for the next 30 (TILT).
    requests: { cpu: "20m", memory: "16Mi" },
    limits: { cpu: "250m", memory: "64Mi" },
  };
  return auxiliaryContainer(database, SENTINEL, resources, {
    command: ["/bin/sh", `${paths.config}/sentinel.sh`],
    workingDir: "/tmp",
    env: [
      ...addressEnv(database),
      fromCredentials(database, "SLIPWAY_REPLICATION_PASSWORD", replication),
      // For the command that the operator runs in it.
      fromCredentials(database, "VALKEYCLI_AUTH", replication),
    ],
    ports: [{ name: "sentinel", port: SENTINEL_PORT }],
    livenessProbe: {
      tcpSocket: { port: "sentinel" },
      initialDelaySeconds: 10,
      // Each is a line in its log.
      periodSeconds: 20,
      failureThreshold: 3,
    },
    volumes,
  });
}

/** Kubernetes expands `$(POD_INDEX)`, which must come first. */
function addressEnv(database: Database) {
  const several = sizeOf(database) > 1;
  return [
    SYSTEM_PATH,
    envVar("HOME", "/tmp"),
    fromPod("POD_INDEX", "metadata.labels['apps.kubernetes.io/pod-index']"),
    envVar("SLIPWAY_ADDRESS", nodeAddress(database, "$(POD_INDEX)")),
    envVar("SLIPWAY_PEERS", several ? nodeAddresses(database).join(" ") : ""),
  ];
}

function environment(database: Database) {
  const { username, password, superuser, replication, monitor } = credentialKeys;
  return [
    ...addressEnv(database),
    fromCredentials(database, "SLIPWAY_USERNAME", username),
    fromCredentials(database, "SLIPWAY_PASSWORD", password),
    fromCredentials(database, "SLIPWAY_ADMIN_PASSWORD", superuser),
    fromCredentials(database, "SLIPWAY_REPLICATION_PASSWORD", replication),
    fromCredentials(database, "SLIPWAY_MONITOR_PASSWORD", monitor),
    // For the commands that the operator runs in it, as the admin.
    fromCredentials(database, "VALKEYCLI_AUTH", superuser),
  ];
}

const script = (name: string) => ({ exec: { command: ["/bin/sh", `${paths.config}/${name}`] } });

/**
 * A server that waits for its primary to be known is still starting: nothing listens. On an overloaded node an
 * answer needs seconds: a server that is killed for it would only be slower. Sentinels replace one that hangs long before, within
 * less than the time after which replicas without a primary count as not ready. Every command in a container costs its node more than
 * the server's answer: they are as rare as may be.
 */
const probes = {
  startupProbe: { tcpSocket: { port: "database" }, periodSeconds: 2, failureThreshold: 900 },
  livenessProbe: { ...script("alive.sh"), periodSeconds: 20, timeoutSeconds: 15, failureThreshold: 3 },
  readinessProbe: { ...script("ready.sh"), periodSeconds: 5, timeoutSeconds: 8, failureThreshold: 3 },
};
