/** Valkey: one instance, or several of which Sentinels keep one the primary. */

import type { Engine } from "../driver.ts";
import { hasEverything, ValkeyTender } from "./cluster-reconciler.ts";
import { desired } from "./manifests.ts";
import { nodeServices, VALKEY_PORT } from "./names.ts";

export function valkeyEngine(): Engine {
  const tender = new ValkeyTender();
  return {
    name: "valkey",
    port: VALKEY_PORT,
    desired,
    services: nodeServices,
    hasEverything,
    tend: (database, live, context) => tender.tend(database, live, context),
    forget: (uid) => tender.forget(uid),
  };
}
