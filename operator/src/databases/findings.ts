/** What one reconcile has found out about a database, and the part of its status that follows from it. */

import {
  credentialKeys,
  type DatabaseCredentials,
  type DatabasePlan,
  type DatabaseStatus,
} from "@slipway/crds";
import type { Database } from "./database.ts";
import type { ClusterState, DatabaseDriver, LiveDatabase, LivePod } from "./driver.ts";
import type { Address } from "./live.ts";
import type { Volumes } from "./volumes.ts";

/** What one reconcile has found out about a database. */
export interface DatabaseFindings {
  database: Database;
  driver: Pick<DatabaseDriver, "port">;
  live: LiveDatabase;
  /** Absent while it is paused. */
  clusterState?: ClusterState;
  volumes?: Volumes;
  /** Pods whose volumes are full. */
  full: readonly LivePod[];
  /** Where clients outside connect, once it is known. */
  address?: Address;
  credentials: DatabaseCredentials;
  now: Date;
  /** The plan in force, where it is not the plan that the database is being changed to. */
  inForce?: DatabasePlan;
}

/** What the server reported stays while none can be queried, except which pod is the primary. */
export function statusOf(
  { database, driver, clusterState, volumes, address, credentials, now }: DatabaseFindings,
  before: DatabaseStatus = {},
): DatabaseStatus {
  const { names, namespace, replicas, instances } = database;
  const inside = `${names.main}.${namespace}.svc`;
  const works = clusterState?.primary !== undefined && clusterState.credentialsHash !== undefined;
  return {
    engine: database.image.engine ?? database.type,
    driver: "native",
    version: database.version,
    runningVersion: clusterState?.runningVersion ?? before.runningVersion,
    primary: clusterState?.primary,
    host: address?.host,
    port: address?.port,
    inside: {
      host: inside,
      port: driver.port,
      // Reading from replicas is PostgreSQL's alone.
      ...(Math.max(instances, replicas) > 1 && database.type === "postgresql"
        ? { replicasHost: `${names.replicas}.${namespace}.svc` }
        : {}),
    },
    name: credentials[credentialKeys.database],
    username: credentials[credentialKeys.username],
    ...previousOf(clusterState, before),
    credentialsSecretRef: { name: names.credentials },
    credentialsHash: clusterState?.credentialsHash ?? before.credentialsHash,
    bootstrappedAt: before.bootstrappedAt ?? (works ? now.toISOString() : undefined),
    identity: clusterState?.identity ?? before.identity,
    setUpHash: clusterState?.setUpHash ?? before.setUpHash,
    certificatesHash: clusterState?.certificatesHash ?? before.certificatesHash,
    restoredAt: before.restoredAt,
    storage:
      volumes?.capacityGb === undefined
        ? before.storage
        : { capacity: volumes.capacityGb, ...(volumes.resizing ? { resizing: true } : {}) },
  };
}

/** Of the last set-up that succeeded. */
function previousOf(
  clusterState: ClusterState | undefined,
  before: DatabaseStatus,
): Pick<DatabaseStatus, "referenceUsername" | "previousPassword"> {
  const { referenceUsername, previousPassword } =
    clusterState?.credentialsHash === undefined ? before : clusterState;
  return { referenceUsername, previousPassword };
}
