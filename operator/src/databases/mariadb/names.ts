/** Names, ports, paths and accounts of MariaDB and Galera, as all files here use them. */

import { databasePodName } from "@slipway/crds";
import type { Database } from "../database.ts";

export const MARIADB_PORT = 3306;

/** Between members: messages of the group, what one has missed, and whole copies. */
export const GROUP_PORT = 4567;
export const INCREMENT_PORT = 4568;
export const COPY_PORT = 4444;

export const CLIENT_PORTS = [{ name: "database", port: MARIADB_PORT }];
export const MEMBER_PORTS = [
  ...CLIENT_PORTS,
  { name: "group", port: GROUP_PORT },
  { name: "increments", port: INCREMENT_PORT },
  { name: "copies", port: COPY_PORT },
];

/** The same in every image; see docs/databases.md. */
export const paths = {
  /** Where the volume is. */
  volume: "/var/lib/mysql",
  data: "/var/lib/mysql/data",
  /** The socket, and what the launcher keeps of this run: in memory. */
  run: "/run/mysqld",
  socket: "/run/mysqld/mysqld.sock",
  tls: "/etc/slipway/tls",
  /** The ConfigMap. */
  config: "/etc/slipway/mariadb",
} as const;

/** The platform's own accounts. The operator itself connects by the socket, as the container's own user. */
export const accounts = {
  monitor: "slipway_monitor",
  /** Of backups: reads the project's database. */
  backup: "slipway_backup",
} as const;

/** Schema of what the monitoring account may call. The project's user does not see it. */
export const OWN_SCHEMA = "slipway";

/** Names of the members, by ordinal, as their certificates have them. */
export function memberAddresses({
  id,
  namespace,
  names,
  members,
}: Pick<Database, "id" | "namespace" | "names" | "members">): string[] {
  return Array.from(
    { length: members },
    (_, ordinal) => `${databasePodName(id, ordinal)}.${names.nodes}.${namespace}.svc`,
  );
}
