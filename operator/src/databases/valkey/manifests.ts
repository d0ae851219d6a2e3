/** Every object of a Valkey service, as a pure function of it. */

import type { DesiredObject } from "../../desired.ts";
import { metadataOf, podLabels, roles } from "../common/metadata.ts";
import { networkPolicy } from "../common/network-policy.ts";
import { headlessService, outsideService, roleService, servicePort } from "../common/services.ts";
import { podDisruptionBudget } from "../common/stateful-set.ts";
import type { Database } from "../database.ts";
import { files } from "./config.ts";
import { CLIENT_PORTS, MEMBER_PORTS, nodeServices, SENTINEL_PORT, sizeOf, VALKEY_PORT } from "./names.ts";
import { statefulSet } from "./stateful-set.ts";

/** In the order in which they are applied: what others depend on first. */
export function desired(database: Database): DesiredObject[] {
  const { names } = database;
  const several = sizeOf(database) > 1;
  return [
    networkPolicy(database, { clients: [VALKEY_PORT], operator: several ? [SENTINEL_PORT] : [] }),
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: metadataOf(database, names.config),
      data: files(database),
    },
    headlessService(database, several ? MEMBER_PORTS : CLIENT_PORTS),
    ...nodeServices(database).map((name, ordinal) => addressOf(database, name, ordinal)),
    statefulSet(database),
    podDisruptionBudget(database),
    roleService(database, names.main, roles.primary, CLIENT_PORTS),
    outsideService(database, CLIENT_PORTS),
  ].filter((object) => object !== undefined);
}

/** An address of one instance that stays the same whichever pod it is, also while it does not serve. */
function addressOf(database: Database, name: string, ordinal: number): DesiredObject {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: metadataOf(database, name),
    spec: {
      type: "ClusterIP",
      publishNotReadyAddresses: true,
      selector: {
        ...podLabels(database),
        "statefulset.kubernetes.io/pod-name": `${database.id}-${ordinal}`,
      },
      ports: MEMBER_PORTS.map(servicePort),
    },
  };
}
