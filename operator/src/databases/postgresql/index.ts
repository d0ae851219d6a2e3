/** PostgreSQL: Patroni keeps one of the members the primary, with its state in the cluster's own ConfigMaps. */

import type { Engine } from "../engine.ts";
import { desired } from "./desired.ts";
import { POSTGRESQL_PORT } from "./names.ts";
import { hasEverything, PostgresqlTender } from "./tend.ts";

export function postgresqlEngine(): Engine {
  const tender = new PostgresqlTender();
  return {
    name: "postgresql",
    port: POSTGRESQL_PORT,
    desired,
    hasEverything,
    tend: (database, live, context) => tender.tend(database, live, context, database.uid),
    forget: (uid) => tender.forget(uid),
  };
}
