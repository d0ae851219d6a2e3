/** One rule of a Kubernetes ClusterRole. */
export interface PolicyRule {
  apiGroups: readonly string[];
  resources: readonly string[];
  resourceNames?: readonly string[];
  verbs: readonly string[];
}

/** What the API server may do in the whole cluster; the chart's ClusterRole is generated from it. */
export const clusterRules: PolicyRule[] = [
  // Whether an organization's namespace is there and guarded.
  { apiGroups: [""], resources: ["namespaces"], verbs: ["get"] },
  // Listed by a project's label, to see what it still holds.
  {
    apiGroups: ["slipway.dev"],
    resources: ["domainclaims"],
    verbs: ["get", "list", "create", "patch", "delete"],
  },
  { apiGroups: ["slipway.dev"], resources: ["projects"], verbs: ["get", "list", "watch"] },
];

/**
 * What it may do in organizations' namespaces alone, where the operator binds this role as one of the namespace's guards.
 * It cannot read a Secret anywhere else.
 */
export const organizationRules: PolicyRule[] = [
  // Environment variables and registry credentials; read only to go on after a creation that was cut short.
  { apiGroups: [""], resources: ["secrets"], verbs: ["get", "create", "patch", "delete"] },
  // Logs of applications.
  { apiGroups: [""], resources: ["pods"], verbs: ["list"] },
  { apiGroups: [""], resources: ["pods/log"], verbs: ["get"] },
  { apiGroups: ["slipway.dev"], resources: ["projects"], verbs: ["create", "patch", "delete"] },
];
