/** Every object of a PostgreSQL database, as a pure function of it. */

import { databasePodName } from "@slipway/crds";
import type { DesiredObject } from "../../desired.ts";
import { metadataOf, roles } from "../common/metadata.ts";
import { networkPolicy } from "../common/network-policy.ts";
import { headlessService, outsideService, roleService } from "../common/services.ts";
import { podDisruptionBudget } from "../common/stateful-set.ts";
import type { Database } from "../database.ts";
import { patroniFile, patroniScripts } from "./config.ts";
import { CLIENT_PORTS, configMaps, MEMBER_PORTS, PATRONI_PORT, POSTGRESQL_PORT } from "./names.ts";
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
      data: { "patroni.yml": patroniFile(database), ...patroniScripts },
    },
    headlessService(database, MEMBER_PORTS),
    statefulSet(database),
    podDisruptionBudget(database),
    roleService(database, names.main, roles.primary, CLIENT_PORTS),
    roleService(database, names.replicas, roles.replica, CLIENT_PORTS),
    outsideService(database, CLIENT_PORTS),
  ].filter((object) => object !== undefined);
}

/** Most members that a database of this engine ever has. */
const MOST = 3;

function patroniAccess(database: Database): DesiredObject[] {
  const { id, namespace, names } = database;
  const pods = Array.from({ length: MOST }, (_, ordinal) => databasePodName(id, ordinal));
  const metadata = metadataOf(database, names.main);
  const rbac = "rbac.authorization.k8s.io";
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata, automountServiceAccountToken: false },
    {
      apiVersion: `${rbac}/v1`,
      kind: "Role",
      metadata,
      rules: patroniRules(id, pods),
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: "RoleBinding",
      metadata,
      roleRef: { apiGroup: rbac, kind: "Role", name: names.main },
      subjects: [{ kind: "ServiceAccount", name: names.main, namespace }],
    },
  ];
}

/** What Patroni may do in its namespace. @param id the cluster's @param pods names of its members */
export function patroniRules(id: string, pods: readonly string[]) {
  const { config, leader, failover, sync } = configMaps({ id });
  return [
    // Neither can be narrowed to names.
    { apiGroups: [""], resources: ["configmaps"], verbs: ["create", "list", "watch"] },
    { apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"] },
    {
      apiGroups: [""],
      resources: ["configmaps"],
      resourceNames: [config, leader, failover, sync],
      verbs: ["get", "patch", "update"],
    },
    { apiGroups: [""], resources: ["pods"], resourceNames: pods, verbs: ["get", "patch"] },
  ];
}
