/** Every object of a PostgreSQL database, as a pure function of it. */

import type { DesiredObject } from "../../desired.ts";
import { metadataOf, roles } from "../common/metadata.ts";
import { networkPolicy } from "../common/network-policy.ts";
import { headlessService, outsideService, roleService } from "../common/services.ts";
import { podDisruptionBudget } from "../common/stateful-set.ts";
import type { Database } from "../database.ts";
import { patroniCorrection, patroniFile } from "./config.ts";
import { CLIENT_PORTS, configMaps, MEMBER_PORTS, PATRONI_PORT, POSTGRESQL_PORT } from "./names.ts";
import { patroniAccess } from "./rbac.ts";
import { statefulSet } from "./stateful-set.ts";

/** In the order in which they are applied: what others depend on first. */
export function desired(database: Database): DesiredObject[] {
  const { names } = database;
  return [
    networkPolicy(database, { clients: [POSTGRESQL_PORT], operator: [PATRONI_PORT], apiserver: true }),
    ...patroniAccess(database),
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: metadataOf(database, configMaps(database).file),
      data: { "patroni.yml": patroniFile(database), "sitecustomize.py": patroniCorrection },
    },
    headlessService(database, MEMBER_PORTS),
    statefulSet(database),
    podDisruptionBudget(database),
    roleService(database, names.main, roles.primary, CLIENT_PORTS),
    roleService(database, names.replicas, roles.replica, CLIENT_PORTS),
    outsideService(database, CLIENT_PORTS),
  ].filter((object) => object !== undefined);
}
