/** MariaDB: a Galera group of three, one of which takes the writes. */

import type { DatabaseDriver } from "../driver.ts";
import { isCaughtUp, MariadbClusterReconciler } from "./cluster-reconciler.ts";
import { desired } from "./manifests.ts";
import { MARIADB_PORT } from "./names.ts";

export function mariadbDriver(): DatabaseDriver {
  const reconciler = new MariadbClusterReconciler();
  return {
    name: "mariadb",
    port: MARIADB_PORT,
    desired,
    isCaughtUp,
    reconcile: (database, live, context) => reconciler.reconcile(database, live, context),
    forget: (uid) => reconciler.forget(uid),
  };
}
