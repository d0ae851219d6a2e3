/** Every object of a MariaDB database, as a pure function of it. */

import type { DesiredObject } from "../../desired.ts";
import { metadataOf, roles } from "../common/metadata.ts";
import { networkPolicy } from "../common/network-policy.ts";
import { headlessService, outsideService, roleService } from "../common/services.ts";
import { podDisruptionBudget } from "../common/stateful-set.ts";
import type { Database } from "../database.ts";
import { files } from "./config.ts";
import { CLIENT_PORTS, MARIADB_PORT, MEMBER_PORTS } from "./names.ts";
import { statefulSet } from "./stateful-set.ts";

/** In the order in which they are applied: what others depend on first. */
export function desired(database: Database): DesiredObject[] {
  const { names } = database;
  return [
    networkPolicy(database, { clients: [MARIADB_PORT] }),
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: metadataOf(database, names.config),
      data: files(database),
    },
    headlessService(database, MEMBER_PORTS),
    statefulSet(database),
    podDisruptionBudget(database),
    roleService(database, names.main, roles.primary, CLIENT_PORTS),
    outsideService(database, CLIENT_PORTS),
  ].filter((object) => object !== undefined);
}
