/** ClickHouse: one server that is its own Keeper, or several that agree by three Keepers beside them. */

import type { DatabaseDriver } from "../driver.ts";
import { ClickHouseClusterReconciler } from "./cluster-reconciler.ts";
import { desired } from "./manifests.ts";
import { HTTPS_PORT, isReplicated, keeperName } from "./names.ts";
import { canReplicate } from "./sql.ts";

export function clickhouseDriver(reconciler = new ClickHouseClusterReconciler()): DatabaseDriver {
  return {
    name: "clickhouse",
    port: HTTPS_PORT,
    refuse: ({ spec }, _plan, image) =>
      (spec.instances ?? 1) > 1 && !canReplicate(image)
        ? {
            reason: "FeatureNotSupported",
            message: "What stands in for ClickHouse on this platform cannot replicate: it runs one instance.",
          }
        : undefined,
    desired,
    services: (database) => (isReplicated(database) ? [`*.${keeperName(database)}`] : []),
    isCaughtUp: (database, live, context) => reconciler.isCaughtUp(database, live, context),
    reconcile: (database, live, context) => reconciler.reconcile(database, live, context),
    forget: (uid) => reconciler.forget(uid),
    changesPlansInBackground: true,
  };
}
