/** Names, ports, paths and accounts of PostgreSQL and Patroni, as all files here use them. */

import type { Database } from "../database.ts";

export const POSTGRESQL_PORT = 5432;
/** Patroni's HTTP interface. */
export const PATRONI_PORT = 8008;

export const CLIENT_PORTS = [{ name: "database", port: POSTGRESQL_PORT }];
export const MEMBER_PORTS = [...CLIENT_PORTS, { name: "patroni", port: PATRONI_PORT }];

/** The same in every image; see docs/databases.md. */
export const paths = {
  /** Where the volume is. */
  volume: "/var/lib/postgresql/data",
  data: "/var/lib/postgresql/data/pgdata",
  socket: "/var/run/postgresql",
  tls: "/etc/slipway/tls",
  patroni: "/etc/patroni",
} as const;

/** The platform's own accounts. These names are reserved. */
export const accounts = {
  superuser: "postgres",
  replication: "slipway_replication",
  rewind: "slipway_rewind",
  monitor: "slipway_monitor",
  /** Of backups: reads the project's database, and acts for its user. */
  backup: "slipway_backup",
  /** Of what connects by reference, in turns: each acts as the project's user. */
  references: ["slipway_reference_1", "slipway_reference_2"],
  /** Of Patroni's HTTP interface. */
  patroni: "slipway",
} as const;

/**
 * ConfigMaps of a database. Patroni names its own after its scope, which is the project's id, and creates them itself:
 * `<id>-config` has the settings that are the same for all members.
 */
export function configMaps({ id }: Pick<Database, "id">) {
  return {
    /** The file that Patroni starts with. */
    file: `${id}-patroni`,
    config: `${id}-config`,
    leader: `${id}-leader`,
    failover: `${id}-failover`,
    sync: `${id}-sync`,
  } as const;
}
