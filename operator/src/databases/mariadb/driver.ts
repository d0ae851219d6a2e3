/** MariaDB: a Galera group of three, one of which takes the writes. */

import type { Engine } from "../driver.ts";
import { hasEverything, MariadbTender } from "./cluster-reconciler.ts";
import { desired } from "./manifests.ts";
import { MARIADB_PORT } from "./names.ts";

export function mariadbEngine(): Engine {
  const tender = new MariadbTender();
  return {
    name: "mariadb",
    port: MARIADB_PORT,
    desired,
    hasEverything,
    tend: (database, live, context) => tender.tend(database, live, context),
    forget: (uid) => tender.forget(uid),
  };
}
