import { credentialKeys } from "@slipway/crds";
import type { DesiredObject } from "../../desired.ts";
import {
  configVolume,
  dataVolume,
  emptyDir,
  envVar,
  fromCredentials,
  fromPod,
  tlsVolume,
} from "../common/pod.ts";
import { readScript, renderScript } from "../common/scripts.ts";
import { databaseStatefulSet } from "../common/stateful-set.ts";
import type { Database } from "../database.ts";
import { restartParameters } from "./config.ts";
import { accounts, configMaps, MEMBER_PORTS, PATRONI_PORT, POSTGRESQL_PORT, paths } from "./names.ts";

/** Seconds that a member has to hand over and to stop. */
const STOP_SECONDS = 60;

/** The members of a cluster. */
export function statefulSet(database: Database): DesiredObject {
  const volumes = [
    emptyDir("socket", paths.socket),
    emptyDir("tmp", "/tmp"),
    emptyDir("shm", "/dev/shm", { memory: "64Mi" }),
    tlsVolume(database, paths.tls),
    configVolume(database, paths.patroni, { name: "patroni", configMap: configMaps(database).file }),
    dataVolume(database, paths.volume),
  ];
  return databaseStatefulSet(database, {
    readAtStart: restartParameters(database),
    stopSeconds: STOP_SECONDS,
    pod: { serviceAccountName: database.names.main, automountServiceAccountToken: true },
    container: {
      command: ["/bin/sh", "-c", START],
      env: environment(database),
      ports: MEMBER_PORTS,
      ...probes,
      volumes,
    },
  });
}

const START = renderScript(readScript(new URL("scripts/start.sh", import.meta.url)), {
  PATRONI: paths.patroni,
}).trimEnd();

/** @param database whose credentials they are */
export function environment(database: Pick<Database, "names">) {
  const { replication, superuser } = credentialKeys;
  /** How members authenticate each other: any certificate of the platform's, since their addresses are no names. */
  const peer = (user: string) => [
    envVar(`PATRONI_${user}_SSLMODE`, "verify-ca"),
    envVar(`PATRONI_${user}_SSLROOTCERT`, `${paths.tls}/ca.crt`),
  ];
  const own = [
    fromPod("PATRONI_NAME", "metadata.name"),
    fromPod("PATRONI_KUBERNETES_POD_IP", "status.podIP"),
    envVar("PATRONI_POSTGRESQL_CONNECT_ADDRESS", `$(PATRONI_KUBERNETES_POD_IP):${POSTGRESQL_PORT}`),
    envVar("PATRONI_RESTAPI_CONNECT_ADDRESS", `$(PATRONI_KUBERNETES_POD_IP):${PATRONI_PORT}`),
    envVar("PATRONI_RESTAPI_USERNAME", accounts.patroni),
    fromCredentials(database, "PATRONI_RESTAPI_PASSWORD", superuser),
    envVar("PATRONI_SUPERUSER_USERNAME", accounts.superuser),
    fromCredentials(database, "PATRONI_SUPERUSER_PASSWORD", superuser),
    envVar("PATRONI_REPLICATION_USERNAME", accounts.replication),
    fromCredentials(database, "PATRONI_REPLICATION_PASSWORD", replication),
    ...peer("REPLICATION"),
    envVar("PATRONI_REWIND_USERNAME", accounts.rewind),
    fromCredentials(database, "PATRONI_REWIND_PASSWORD", replication),
    ...peer("REWIND"),
    envVar("PGDATA", paths.data),
    envVar("PGHOST", paths.socket),
    envVar("PYTHONUNBUFFERED", "1"),
    // Python finds `sitecustomize.py` there.
    envVar("PYTHONPATH", paths.patroni),
  ];
  return [...own, envVar("HOME", "/tmp"), envVar("SLIPWAY_KEPT", own.map(({ name }) => name).join(" "))];
}

const patroni = (path: string) => ({ httpGet: { path, port: "patroni" } });

/**
 * Patroni's own endpoints. A Patroni that hangs keeps the role label of its pod, so no other member is written to until it is deleted: it
 * is detected and killed quickly, without the grace period of a stop.
 */
export const probes = {
  startupProbe: { ...patroni("/liveness"), periodSeconds: 2, timeoutSeconds: 3, failureThreshold: 300 },
  livenessProbe: {
    ...patroni("/liveness"),
    periodSeconds: 5,
    timeoutSeconds: 5,
    failureThreshold: 2,
    terminationGracePeriodSeconds: 5,
  },
  readinessProbe: { ...patroni("/readiness"), periodSeconds: 3, timeoutSeconds: 3, failureThreshold: 2 },
};
