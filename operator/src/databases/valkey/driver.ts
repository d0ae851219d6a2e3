/** Valkey: one instance, or several of which Sentinels keep one the primary. */

import type { DatabaseDriver } from "../driver.ts";
import { isCaughtUp, ValkeyClusterReconciler } from "./cluster-reconciler.ts";
import { desired } from "./manifests.ts";
import { nodeServices, VALKEY_PORT } from "./names.ts";

export function valkeyDriver(): DatabaseDriver {
  const reconciler = new ValkeyClusterReconciler();
  return {
    name: "valkey",
    port: VALKEY_PORT,
    desired,
    services: nodeServices,
    isCaughtUp,
    reconcile: (database, live, context) => reconciler.reconcile(database, live, context),
    forget: (uid) => reconciler.forget(uid),
  };
}
