import { credentialKeys } from "@slipway/crds";
import type { DesiredObject } from "../../desired.ts";
import {
  configVolume,
  containerFields,
  databaseStatefulSet,
  dataVolume,
  emptyDir,
  fromCredentials,
  fromPod,
  mountsOf,
  podFields,
  podMetadata,
  tlsVolume,
  volumesOf,
} from "../common/pod.ts";
import { readScript, renderScript } from "../common/scripts.ts";
import type { Database } from "../database.ts";
import { accounts, configMaps, PATRONI_PORT, POSTGRESQL_PORT, paths } from "./names.ts";
import { restartParameters } from "./parameters.ts";

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
    metadata: podMetadata(database, restartParameters(database)),
    spec: {
      ...podFields(database, STOP_SECONDS),
      serviceAccountName: database.names.main,
      automountServiceAccountToken: true,
      containers: [
        {
          ...containerFields(database),
          command: ["/bin/sh", "-c", START],
          env: environment(database),
          ports: [
            { name: "database", containerPort: POSTGRESQL_PORT, protocol: "TCP" },
            { name: "patroni", containerPort: PATRONI_PORT, protocol: "TCP" },
          ],
          ...probes,
          volumeMounts: mountsOf(volumes),
        },
      ],
      volumes: volumesOf(volumes),
    },
  });
}

const START = renderScript(readScript(new URL("scripts/start.sh", import.meta.url)), {
  PATRONI: paths.patroni,
}).trimEnd();

function environment(database: Database) {
  const { replication, superuser } = credentialKeys;
  const plain = (name: string, value: string) => ({ name, value });
  /** How members authenticate each other: any certificate of the platform's, since their addresses are no names. */
  const peer = (user: string) => [
    plain(`PATRONI_${user}_SSLMODE`, "verify-ca"),
    plain(`PATRONI_${user}_SSLROOTCERT`, `${paths.tls}/ca.crt`),
  ];
  const own = [
    fromPod("PATRONI_NAME", "metadata.name"),
    fromPod("PATRONI_KUBERNETES_POD_IP", "status.podIP"),
    plain("PATRONI_POSTGRESQL_CONNECT_ADDRESS", `$(PATRONI_KUBERNETES_POD_IP):${POSTGRESQL_PORT}`),
    plain("PATRONI_RESTAPI_CONNECT_ADDRESS", `$(PATRONI_KUBERNETES_POD_IP):${PATRONI_PORT}`),
    plain("PATRONI_RESTAPI_USERNAME", accounts.patroni),
    fromCredentials(database, "PATRONI_RESTAPI_PASSWORD", superuser),
    plain("PATRONI_SUPERUSER_USERNAME", accounts.superuser),
    fromCredentials(database, "PATRONI_SUPERUSER_PASSWORD", superuser),
    plain("PATRONI_REPLICATION_USERNAME", accounts.replication),
    fromCredentials(database, "PATRONI_REPLICATION_PASSWORD", replication),
    ...peer("REPLICATION"),
    plain("PATRONI_REWIND_USERNAME", accounts.rewind),
    fromCredentials(database, "PATRONI_REWIND_PASSWORD", replication),
    ...peer("REWIND"),
    plain("PGDATA", paths.data),
    plain("PGHOST", paths.socket),
    plain("PYTHONUNBUFFERED", "1"),
    // Python finds `sitecustomize.py` there.
    plain("PYTHONPATH", paths.patroni),
  ];
  return [...own, plain("HOME", "/tmp"), plain("SLIPWAY_KEPT", own.map(({ name }) => name).join(" "))];
}

const patroni = (path: string) => ({ httpGet: { path, port: "patroni" } });

/**
 * Patroni's own endpoints. A Patroni that hangs keeps the role label of its pod, so no other member is written to until it is deleted: it
 * is detected and killed quickly, without the grace period of a stop.
 */
const probes = {
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
