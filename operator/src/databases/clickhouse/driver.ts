/** ClickHouse: one server that is its own Keeper, or several that agree by three Keepers beside them. */

import type { Engine } from "../driver.ts";
import { decide, lateInMs, planToBuild } from "../plan-change-state.ts";
import { ClickHouseTender } from "./cluster-reconciler.ts";
import { desired } from "./manifests.ts";
import { HTTPS_PORT, isReplicated, keeperName } from "./names.ts";
import { canReplicate } from "./sql.ts";

export function clickhouseEngine(tender = new ClickHouseTender()): Engine {
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
    hasEverything: (database, live, context) => tender.hasEverything(database, live, context),
    tend: (database, live, context) => tender.tend(database, live, context),
    forget: (uid) => tender.forget(uid),
    planChange: { planToBuild, decide, lateInMs },
  };
}
