/** One rule of a Kubernetes ClusterRole. */
export interface PolicyRule {
  apiGroups: readonly string[];
  resources: readonly string[];
  resourceNames?: readonly string[];
  verbs: readonly string[];
}

/** All that the API server may do in the cluster: what the chart's role is generated from. */
export const rules: PolicyRule[] = [
  // Whether an organization's namespace is there and guarded.
  { apiGroups: [""], resources: ["namespaces"], verbs: ["get"] },
  // Environment variables and registry credentials; read only to go on after a creation that was cut short.
  { apiGroups: [""], resources: ["secrets"], verbs: ["get", "create", "patch", "delete"] },
  { apiGroups: ["slipway.dev"], resources: ["domainclaims"], verbs: ["get", "create", "delete"] },
  {
    apiGroups: ["slipway.dev"],
    resources: ["projects"],
    verbs: ["get", "list", "watch", "create", "delete"],
  },
];
