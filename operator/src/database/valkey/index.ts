/** Valkey: one instance, or several of which Sentinels keep one the primary. */

import { ordinalOf, primaryOf } from "../common/pods.ts";
import type { Engine } from "../engine.ts";
import { desired } from "./desired.ts";
import { nodeServices, VALKEY_PORT } from "./names.ts";
import { ValkeyTender } from "./tend.ts";

export function valkeyEngine(): Engine {
  const tender = new ValkeyTender();
  return {
    name: "valkey",
    port: VALKEY_PORT,
    desired,
    services: nodeServices,
    mayShrink: ({ instances }, live) => {
      const primary = primaryOf(live);
      return primary !== undefined && ordinalOf(primary) < instances;
    },
    tend: (database, live, context) => tender.tend(database, live, context),
    forget: (uid) => tender.forget(uid),
  };
}
