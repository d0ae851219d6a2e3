/** Files of a member's ConfigMap: the server's settings and the shell programs of its container. Pure. */

import { readScript, renderScript } from "../common/scripts.ts";
import type { Database } from "../database.ts";
import { LEAD_SQL } from "./events.ts";
import { accounts, OWN_SCHEMA, paths } from "./names.ts";
import { serverFile } from "./parameters.ts";

/** Variables of the group's state, which a member prints as lines of name and value. */
const STATUS = [
  "wsrep_cluster_size",
  "wsrep_cluster_status",
  "wsrep_last_committed",
  "wsrep_local_state",
  "wsrep_local_state_uuid",
  "wsrep_ready",
];

const values = {
  RUN: paths.run,
  DATA: paths.data,
  SOCKET: paths.socket,
  TLS: paths.tls,
  CONFIG: paths.config,
  OWN_SCHEMA,
  MONITOR_USER: accounts.monitor,
  SHOW_STATUS: `SHOW GLOBAL STATUS WHERE Variable_name IN (${STATUS.map((name) => `'${name}'`).join(",")})`,
  /** Stops the scheduled events of a member. */
  REST: "SET GLOBAL event_scheduler = OFF",
};

const script = (name: string) =>
  renderScript(readScript(new URL(`scripts/${name}.sh`, import.meta.url)), values);

const START = script("start");
const ASK = script("ask");
const ORDER = script("order");
const READY = script("ready");
const ALIVE = script("alive");

/** Files of the ConfigMap `<id>-config`. None of them has a password. */
export function files(database: Database): Record<string, string> {
  return {
    "server.cnf": serverFile(database),
    "start.sh": START,
    "ask.sh": ASK,
    "order.sh": ORDER,
    "lead.sql": LEAD_SQL,
    "ready.sh": READY,
    "alive.sh": ALIVE,
  };
}
