/** PostgreSQL: Patroni keeps one of the members the primary, with its state in the cluster's own ConfigMaps. */

import type { Engine } from "../driver.ts";
import { hasEverything, PostgresqlTender } from "./cluster-reconciler.ts";
import { desired } from "./manifests.ts";
import { POSTGRESQL_PORT } from "./names.ts";

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
