/** One rule of a Kubernetes role. */
export interface PolicyRule {
  apiGroups: readonly string[];
  resources: readonly string[];
  verbs: readonly string[];
}

/** What the collector may do in the whole cluster: the chart's ClusterRole is generated from it. Objects of projects identify the project of a request. */
export const clusterRules: PolicyRule[] = [
  { apiGroups: [""], resources: ["services"], verbs: ["list", "watch"] },
  { apiGroups: ["networking.k8s.io"], resources: ["ingresses"], verbs: ["list", "watch"] },
];

/** Where logs of projects are kept: labels of pods identify whose a log is. Of pods the collector requests the metadata of its node's alone. */
export const logRules: PolicyRule[] = [{ apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"] }];

/** And in the platform's own namespace: the operator's pods query the ingress whether projects answer, which is nobody's request. */
export const namespaceRules: PolicyRule[] = [
  { apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"] },
];
