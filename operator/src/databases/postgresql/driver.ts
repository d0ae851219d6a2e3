/** PostgreSQL: Patroni keeps one of the members the primary, with its state in the cluster's own ConfigMaps. */

import type { DatabaseDriver } from "../driver.ts";
import { isCaughtUp, PostgresqlClusterReconciler } from "./cluster-reconciler.ts";
import { desired } from "./manifests.ts";
import { POSTGRESQL_PORT } from "./names.ts";

export function postgresqlDriver(): DatabaseDriver {
  const reconciler = new PostgresqlClusterReconciler();
  return {
    name: "postgresql",
    port: POSTGRESQL_PORT,
    desired,
    isCaughtUp,
    reconcile: (database, live, context) => reconciler.reconcile(database, live, context, database.uid),
    forget: (uid) => reconciler.forget(uid),
  };
}
