/** One rule of a Kubernetes Role or ClusterRole. The chart's roles are generated from the controllers' rules. */
export interface PolicyRule {
  apiGroups: readonly string[];
  resources: readonly string[];
  resourceNames?: readonly string[];
  verbs: readonly string[];
}
