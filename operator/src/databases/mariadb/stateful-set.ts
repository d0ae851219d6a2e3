import { credentialKeys } from "@slipway/crds";
import type { DesiredObject } from "../../desired.ts";
import {
  configVolume,
  dataVolume,
  emptyDir,
  envVar,
  fromCredentials,
  fromPod,
  SYSTEM_PATH,
  tlsVolume,
} from "../common/pod.ts";
import { databaseStatefulSet } from "../common/stateful-set.ts";
import type { Database } from "../database.ts";
import { files } from "./config.ts";
import { MEMBER_PORTS, memberAddresses, paths } from "./names.ts";

/** Seconds that a server has to write its last pages, and to leave the group. */
const STOP_SECONDS = 120;

/** The members of a group. */
export function statefulSet(database: Database): DesiredObject {
  const volumes = [
    emptyDir("run", paths.run, { memory: "8Mi" }),
    emptyDir("tmp", "/tmp"),
    tlsVolume(database, paths.tls),
    configVolume(database, paths.config),
    dataVolume(database, paths.volume),
  ];
  return databaseStatefulSet(database, {
    readAtStart: files(database),
    stopSeconds: STOP_SECONDS,
    container: {
      command: ["/bin/sh", `${paths.config}/start.sh`],
      workingDir: "/tmp",
      env: environment(database),
      ports: MEMBER_PORTS,
      ...probes,
      volumes,
    },
  });
}

/** Kubernetes expands `$(SLIPWAY_MEMBER)`, which must come first. */
function environment(database: Database) {
  const { names, namespace } = database;
  const own = [
    SYSTEM_PATH,
    envVar("HOME", "/tmp"),
    fromPod("SLIPWAY_MEMBER", "metadata.name"),
    fromPod("SLIPWAY_ADDRESS", "status.podIP"),
    envVar("SLIPWAY_SELF", `$(SLIPWAY_MEMBER).${names.nodes}.${namespace}.svc`),
    envVar("SLIPWAY_PEERS", memberAddresses(database).join(" ")),
    fromCredentials(database, "SLIPWAY_MONITOR_PASSWORD", credentialKeys.monitor),
  ];
  return [...own, envVar("SLIPWAY_KEPT", own.map(({ name }) => name).join(" "))];
}

const script = (name: string) => ({ exec: { command: ["/bin/sh", `${paths.config}/${name}`] } });

/**
 * There is no end to how long a member may recover, wait for others, or be copied. The group expels one that hangs within
 * seconds, and Services exclude it once it is not ready; so it is killed late, lest a busy node should kill what only is slow.
 */
const probes = {
  livenessProbe: {
    ...script("alive.sh"),
    periodSeconds: 20,
    timeoutSeconds: 15,
    failureThreshold: 6,
    terminationGracePeriodSeconds: 10,
  },
  readinessProbe: { ...script("ready.sh"), periodSeconds: 5, timeoutSeconds: 5, failureThreshold: 3 },
};
