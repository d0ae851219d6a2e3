/** What Patroni may do: write its own ConfigMaps and the labels of its own pods, nothing else. Pure. */

import { databasePodName } from "@slipway/crds";
import type { DesiredObject } from "../../desired.ts";
import { metadataOf } from "../common/metadata.ts";
import type { Database } from "../database.ts";
import { configMaps } from "./names.ts";

/** Most members that a database of this engine ever has. */
const MOST = 3;

export function patroniAccess(database: Database): DesiredObject[] {
  const { id, namespace, names } = database;
  const { config, leader, failover, sync } = configMaps(database);
  const pods = Array.from({ length: MOST }, (_, ordinal) => databasePodName(id, ordinal));
  const metadata = metadataOf(database, names.main);
  const rbac = "rbac.authorization.k8s.io";
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata, automountServiceAccountToken: false },
    {
      apiVersion: `${rbac}/v1`,
      kind: "Role",
      metadata,
      rules: [
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
      ],
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
