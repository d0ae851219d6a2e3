/** Every object of a ClickHouse database, as a pure function of it. */

import type { DesiredObject } from "../../desired.ts";
import { metadataOf, roles } from "../common/metadata.ts";
import { networkPolicy } from "../common/network-policy.ts";
import { headlessService, outsideService, roleService } from "../common/services.ts";
import { podDisruptionBudget } from "../common/stateful-set.ts";
import type { Database } from "../database.ts";
import { serverFiles } from "./config.ts";
import { keepers } from "./keeper.ts";
import { HTTPS_PORT, isReplicated } from "./names.ts";
import { serverPorts, statefulSet } from "./stateful-set.ts";

const CLIENTS = [{ name: "database", port: HTTPS_PORT }];

/** In the order in which they are applied: what others depend on first. */
export function desired(database: Database): DesiredObject[] {
  const { names } = database;
  const files = Object.entries(serverFiles(database)).map(([key, { text }]) => [key, text] as const);
  return [
    networkPolicy(database, { clients: [HTTPS_PORT] }),
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: metadataOf(database, names.config),
      data: Object.fromEntries(files),
    },
    ...(isReplicated(database) ? keepers(database) : []),
    headlessService(database, serverPorts(database)),
    statefulSet(database),
    podDisruptionBudget(database),
    roleService(database, names.main, roles.primary, CLIENTS),
    outsideService(database, CLIENTS),
  ].filter((object) => object !== undefined);
}
