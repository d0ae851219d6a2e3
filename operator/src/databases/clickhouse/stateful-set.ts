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
import { readScript, renderScript } from "../common/scripts.ts";
import { databaseStatefulSet } from "../common/stateful-set.ts";
import type { Database } from "../database.ts";
import { serverFiles } from "./config.ts";
import {
  accounts,
  HTTPS_PORT,
  INTERSERVER_PORT,
  isReplicated,
  NATIVE_PORT,
  paths,
  serverAddress,
} from "./names.ts";

/** Seconds that a server has to end statements and to write what it has in memory. */
const STOP_SECONDS = 60;

const MIB = 1024 * 1024;

/** Ports of a server that others connect to, by name. */
export function serverPorts(database: Database) {
  return [
    { name: "database", port: HTTPS_PORT },
    ...(isReplicated(database)
      ? [
          { name: "native", port: NATIVE_PORT },
          { name: "interserver", port: INTERSERVER_PORT },
        ]
      : []),
  ];
}

/** The servers. */
export function statefulSet(database: Database): DesiredObject {
  const files = serverFiles(database);
  const items = Object.entries(files).map(([key, { path }]) => ({ key, path }));
  const volumes = [
    emptyDir("tmp", "/tmp"),
    tlsVolume(database, paths.tls),
    configVolume(database, paths.config, { items }),
    dataVolume(database, paths.data),
  ];
  return databaseStatefulSet(database, {
    readAtStart: files,
    stopSeconds: STOP_SECONDS,
    container: {
      command: ["/bin/sh", "-c", START],
      workingDir: "/tmp",
      env: environment(database),
      ports: serverPorts(database),
      ...probes,
      volumes,
    },
  });
}

const START = renderScript(readScript(new URL("scripts/start-server.sh", import.meta.url)), {
  CONFIG: paths.config,
}).trimEnd();

function environment(database: Database) {
  const { superuser, replication } = credentialKeys;
  const own = [
    fromPod("SLIPWAY_POD", "metadata.name"),
    envVar("SLIPWAY_ADDRESS", serverAddress(database, "$(SLIPWAY_POD)")),
    fromCredentials(database, "SLIPWAY_ADMIN_PASSWORD", superuser),
    fromCredentials(database, "SLIPWAY_REPLICATION_PASSWORD", replication),
    envVar("SLIPWAY_KEEPER_IDENTITY", `${accounts.keeper}:$(SLIPWAY_REPLICATION_PASSWORD)`),
    ...Object.entries(planVariables(database)).map(([name, value]) => envVar(name, value)),
  ];
  return [
    SYSTEM_PATH,
    envVar("HOME", "/tmp"),
    envVar("LANG", "C.UTF-8"),
    ...own,
    envVar("SLIPWAY_KEPT", [...own.map(({ name }) => name), "SLIPWAY_KEPT"].join(" ")),
  ];
}

/**
 * Settings as environment variables of a pod, so that a pod keeps its own while others are replaced: files are shared by
 * all of them, and read again while servers run.
 */
function planVariables({ memoryBytes, cpus }: Pick<Database, "memoryBytes" | "cpus">) {
  return {
    /** All statements together; the rest is for what the server does not count. */
    SLIPWAY_SERVER_MEMORY: share(memoryBytes, 0.8),
    /** One statement. */
    SLIPWAY_QUERY_MEMORY: share(memoryBytes, 0.6),
    SLIPWAY_MARK_CACHE: share(memoryBytes, 1 / 16),
    SLIPWAY_CONCURRENT_QUERIES: String(Math.min(Math.max(Math.round(cpus * 25), 25), 200)),
  } as const;
}

/** Whole mebibytes, in bytes. */
function share(bytes: number, part: number): string {
  return String(Math.floor((bytes * part) / MIB) * MIB);
}

const ping = { httpGet: { path: "/ping", port: "database", scheme: "HTTPS" } };

/** A server that loads many tables, or replays its Keeper's log, is still starting. */
const probes = {
  startupProbe: { ...ping, periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 1_800 },
  livenessProbe: { ...ping, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 },
  readinessProbe: { ...ping, periodSeconds: 3, timeoutSeconds: 5, failureThreshold: 2 },
};
