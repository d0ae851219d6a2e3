/** Names, ports, paths and accounts of ClickHouse and its Keepers, as all files here use them. */

import { databasePodName } from "@slipway/crds";
import type { Database } from "../database.ts";

/** The HTTP interface, with TLS: what clients and the operator speak. */
export const HTTPS_PORT = 8443;
/** The native protocol with TLS: by which servers query each other. */
export const NATIVE_PORT = 9440;
/** By which servers fetch data from each other. */
export const INTERSERVER_PORT = 9010;
export const KEEPER_PORT = 9281;
/** By which Keepers agree. */
export const RAFT_PORT = 9234;

/** The same in every image; see docs/databases.md. */
export const paths = {
  config: "/etc/clickhouse-server",
  keeperConfig: "/etc/clickhouse-keeper",
  /** Where the volume is, of servers and Keepers alike. */
  data: "/var/lib/clickhouse",
  tls: "/etc/slipway/tls",
} as const;

/** The platform's own accounts. These names are reserved. */
export const accounts = {
  admin: "slipway_admin",
  /** By which servers fetch data from each other. */
  interserver: "slipway_interserver",
  /** Owner of what servers keep in Keeper. */
  keeper: "slipway",
} as const;

/** The one group of servers that have the same data. */
export const CLUSTER = "default";
export const SHARD = "1";

/** Keepers of several servers: as many as one of them may be lost. */
export const KEEPERS = 3;

/** Servers that exist, will exist or may exist again. With more than one, there are Keepers beside them. */
export function sizeOf({ members }: Pick<Database, "members">): number {
  return members;
}

export function isReplicated(database: Pick<Database, "members">): boolean {
  return sizeOf(database) > 1;
}

/** StatefulSet, Service, ConfigMap and PodDisruptionBudget of the Keepers. */
export function keeperName({ id }: Pick<Database, "id">): string {
  return `${id}-keeper`;
}

/** @param pod name of a server's pod, or a variable for it */
export function serverAddress(
  { names, namespace }: Pick<Database, "names" | "namespace">,
  pod: string,
): string {
  return `${pod}.${names.nodes}.${namespace}.svc`;
}

export function serverAddresses(database: Database): string[] {
  return Array.from({ length: sizeOf(database) }, (_, ordinal) =>
    serverAddress(database, databasePodName(database.id, ordinal)),
  );
}

export function keeperAddresses(database: Pick<Database, "id" | "namespace">): string[] {
  const name = keeperName(database);
  return Array.from(
    { length: KEEPERS },
    (_, ordinal) => `${databasePodName(name, ordinal)}.${name}.${database.namespace}.svc`,
  );
}
