/** Patroni's configuration: the file that every member starts with, and the settings that they share. Pure. */

import { readFileSync } from "node:fs";
import { labels } from "@slipway/crds";
import { stringify } from "yaml";
import { roles } from "../common/metadata.ts";
import type { Database } from "../database.ts";
import { accounts, PATRONI_PORT, POSTGRESQL_PORT, paths } from "./names.ts";
import { parameters } from "./parameters.ts";

/** Settings of a whole cluster, as Patroni keeps them in the annotation `config` of its ConfigMap. */
export type SharedConfig = ReturnType<typeof sharedConfig>;

/**
 * A leader that is silent is replaced after `ttl` seconds; `loop_wait + 2 × retry_timeout` must not exceed it. In
 * failsafe mode it stays the leader without the apiserver for as long as it reaches every member. A crashed server is noticed, and a
 * switchover begun, with the next loop: each of them is a write to the apiserver.
 */
export function sharedConfig(database: Database) {
  return {
    ttl: 20,
    loop_wait: 5,
    retry_timeout: 5,
    // In which a crashed primary may restart before a failover.
    primary_start_timeout: 30,
    primary_stop_timeout: 20,
    failsafe_mode: true,
    synchronous_mode: synchronousMode(database),
    synchronous_node_count: 1,
    postgresql: {
      use_pg_rewind: true,
      use_slots: true,
      parameters: parameters(database),
      pg_hba: hostBasedAccess(),
    },
  };
}

/** An acknowledged write is on two members wherever there are two. A member that still exists counts. */
function synchronousMode({ members }: Database): "off" | "on" | "quorum" {
  return members >= 3 ? "quorum" : members === 2 ? "on" : "off";
}

/**
 * Who may connect how. The superuser connects by the socket alone, which only this container has; everybody else over TLS
 * with a password. Addresses are the business of the NetworkPolicy.
 */
function hostBasedAccess(): string[] {
  const { superuser, replication, rewind, monitor } = accounts;
  return [
    `local all ${superuser} trust`,
    "local all all scram-sha-256",
    `hostssl replication ${replication} all scram-sha-256`,
    `hostssl postgres ${rewind} all scram-sha-256`,
    `hostssl postgres ${monitor} all scram-sha-256`,
    `host all ${superuser},${replication},${rewind},${monitor} all reject`,
    "host replication all all reject",
    "hostssl all all all scram-sha-256",
    "host all all all reject",
  ];
}

/** `patroni.yml`. Names, addresses and passwords come as environment variables. */
export function patroniFile(database: Database): string {
  const file = {
    scope: database.id,
    log: { level: "INFO", deduplicate_heartbeat_logs: true },
    restapi: { listen: `0.0.0.0:${PATRONI_PORT}` },
    kubernetes: {
      namespace: database.namespace,
      use_endpoints: false,
      // Patroni finds its members and its own ConfigMaps by these, and labels what it creates.
      scope_label: labels.project,
      labels: { [labels.type]: database.type },
      role_label: labels.role,
      leader_label_value: roles.primary,
      follower_label_value: roles.replica,
      standby_leader_label_value: roles.replica,
      retriable_http_codes: [429, 500, 502, 503, 504],
    },
    bootstrap: {
      dcs: sharedConfig(database),
      initdb: [{ encoding: "UTF8" }, { locale: "C.UTF-8" }, "data-checksums"],
    },
    postgresql: {
      listen: `*:${POSTGRESQL_PORT}`,
      data_dir: paths.data,
      pgpass: "/tmp/pgpass",
      use_unix_socket: true,
      use_unix_socket_repl: false,
      // A member that cannot follow any more copies the primary again automatically.
      remove_data_directory_on_rewind_failure: true,
      remove_data_directory_on_diverged_timelines: true,
      create_replica_methods: ["basebackup"],
      basebackup: [{ checkpoint: "fast" }, "verbose"],
    },
  };
  // Patroni reads YAML 1.1, in which an "on" without quotes is no word.
  return stringify(file, { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false });
}

/** What every Patroni loads at its start; the file has the reason. */
export const patroniCorrection = readFileSync(new URL("scripts/sitecustomize.py", import.meta.url), "utf8");
