/** What the operator may do for databases; the chart's roles are generated from it. */

import type { PolicyRule } from "../rbac.ts";

export { authorityRules as namespaceRules } from "./tls/authority.ts";

const WATCH = ["list", "watch"] as const;
const OWN = ["get", "create", "patch", "delete"] as const;

/** Over the whole cluster: what the watches see. */
export const rules: PolicyRule[] = [
  { apiGroups: [""], resources: ["configmaps", "serviceaccounts"], verbs: WATCH },
  { apiGroups: ["apps"], resources: ["statefulsets"], verbs: WATCH },
  { apiGroups: ["rbac.authorization.k8s.io"], resources: ["roles"], verbs: WATCH },
];

/** In organizations' namespaces alone. */
export const organizationRules: PolicyRule[] = [
  // Patroni's Role hands out rights over ConfigMaps, which only a subject that has them may: hence `update`.
  { apiGroups: [""], resources: ["configmaps"], verbs: [...OWN, ...WATCH, "update"] },
  { apiGroups: [""], resources: ["serviceaccounts"], verbs: OWN },
  { apiGroups: ["apps"], resources: ["statefulsets"], verbs: OWN },
  { apiGroups: ["rbac.authorization.k8s.io"], resources: ["roles", "rolebindings"], verbs: OWN },
  // Accounts are created by the engine's own client, in its container. A connection over WebSocket is a `get`.
  { apiGroups: [""], resources: ["pods/exec"], verbs: ["create", "get"] },
];
