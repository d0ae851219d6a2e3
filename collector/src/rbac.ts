/** One rule of a Kubernetes role. */
export interface PolicyRule {
  apiGroups: readonly string[];
  resources: readonly string[];
  resourceNames?: readonly string[];
  verbs: readonly string[];
}

/** What the collector may do in the whole cluster: the chart's ClusterRole is generated from it. Objects of projects identify the project of a request. */
export const clusterRules: PolicyRule[] = [
  { apiGroups: [""], resources: ["services"], verbs: ["list", "watch"] },
  { apiGroups: ["networking.k8s.io"], resources: ["ingresses"], verbs: ["list", "watch"] },
];

/** Where logs of projects are kept, or their instances sampled: labels of pods identify whose a pod is. Of pods the collector requests those of its node alone. */
export const logRules: PolicyRule[] = [{ apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"] }];

/** Where instances are sampled: what they use, by the kubelet of the node. Restarts are in the status of its pods, which {@link logRules} are for. */
export const metricsRules: PolicyRule[] = [{ apiGroups: [""], resources: ["nodes/stats"], verbs: ["get"] }];

/** And in the platform's own namespace: the operator's pods query the ingress whether projects answer, which is nobody's request. */
export const namespaceRules: PolicyRule[] = [
  { apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"] },
];
