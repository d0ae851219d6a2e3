import { LOG_DRAINS } from "@slipway/crds";
import type { PolicyRule } from "../rbac.ts";

/** What the process that delivers log drains may do in the whole cluster. Of projects it uses their names. */
export const drainClusterRules: PolicyRule[] = [
  { apiGroups: ["slipway.dev"], resources: ["logdrains", "projects"], verbs: ["list", "watch"] },
  { apiGroups: ["slipway.dev"], resources: ["logdrains/status"], verbs: ["update"] },
];

/** In organizations' namespaces alone: the operator binds it there. Credentials of drains, each by its name. */
export const drainOrganizationRules: PolicyRule[] = [
  { apiGroups: [""], resources: ["secrets"], verbs: ["get"] },
];

/** In the platform's own namespace: its Lease. */
export const drainNamespaceRules: PolicyRule[] = [
  { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"] },
  {
    apiGroups: ["coordination.k8s.io"],
    resources: ["leases"],
    resourceNames: [LOG_DRAINS],
    verbs: ["get", "update"],
  },
];
