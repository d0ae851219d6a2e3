/** MariaDB: a Galera group of three, one of which takes the writes. */

import type { Engine } from "../engine.ts";
import { desired } from "./desired.ts";
import { MARIADB_PORT } from "./names.ts";
import { hasEverything, MariadbTender } from "./tend.ts";

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
