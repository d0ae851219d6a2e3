/** PostgreSQL: Patroni keeps one of the members the primary, with its state in the cluster's own ConfigMaps. */

import { ordinalOf, primaryOf } from "../common/pods.ts";
import type { Engine } from "../engine.ts";
import { desired } from "./desired.ts";
import { POSTGRESQL_PORT } from "./names.ts";
import { PostgresqlTender } from "./tend.ts";

export function postgresqlEngine(): Engine {
  const tender = new PostgresqlTender();
  return {
    name: "postgresql",
    port: POSTGRESQL_PORT,
    desired,
    mayShrink: ({ instances }, live) => {
      const primary = primaryOf(live);
      return primary !== undefined && ordinalOf(primary) < instances;
    },
    tend: (database, live, context) => tender.tend(database, live, context, database.uid),
    forget: (uid) => tender.forget(uid),
  };
}
