/** One rule of a Kubernetes Role or ClusterRole. The chart's roles are generated from the controllers' rules. */
export interface PolicyRule {
  apiGroups: readonly string[];
  resources: readonly string[];
  resourceNames?: readonly string[];
  verbs: readonly string[];
}

/** Writing Events about objects: about those of a namespace there, about those of none in `default`. */
export const eventRules: PolicyRule[] = [
  { apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create", "patch"] },
];
