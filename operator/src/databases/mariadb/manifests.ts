/** Every object of a MariaDB database, as a pure function of it. */

import type { DesiredObject } from "../../desired.ts";
import { metadataOf, roles } from "../common/metadata.ts";
import { networkPolicy } from "../common/network-policy.ts";
import { podDisruptionBudget } from "../common/pdb.ts";
import { headlessService, outsideService, roleService } from "../common/services.ts";
import type { Database } from "../database.ts";
import { files } from "./config.ts";
import { COPY_PORT, GROUP_PORT, INCREMENT_PORT, MARIADB_PORT } from "./names.ts";
import { statefulSet } from "./stateful-set.ts";

const CLIENTS = [{ name: "database", port: MARIADB_PORT }];
const MEMBERS = [
  ...CLIENTS,
  { name: "group", port: GROUP_PORT },
  { name: "increments", port: INCREMENT_PORT },
  { name: "copies", port: COPY_PORT },
];

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
    headlessService(database, MEMBERS),
    statefulSet(database),
    podDisruptionBudget(database),
    roleService(database, names.main, roles.primary, CLIENTS),
    outsideService(database, CLIENTS),
  ].filter((object) => object !== undefined);
}
