/** What reading runs' logs and samples needs. The chart's roles are generated from it. */

import type { PolicyRule } from "../rbac.ts";

/** Service account, in the operator's namespace, whose token the kubelets see. */
export const KUBELET_READER = "slipway-kubelet-reader";

/** Where kubelets listen, and whether a node is ready, so that the state of its pods is trusted. */
export const rules: PolicyRule[] = [
  { apiGroups: [""], resources: ["nodes"], verbs: ["get", "list", "watch"] },
];

/** In organizations' namespaces alone: the end of a finished run's log. */
export const organizationRules: PolicyRule[] = [{ apiGroups: [""], resources: ["pods/log"], verbs: ["get"] }];

/** In the operator's own namespace: tokens of the reader. */
export const namespaceRules: PolicyRule[] = [
  {
    apiGroups: [""],
    resources: ["serviceaccounts/token"],
    resourceNames: [KUBELET_READER],
    verbs: ["create"],
  },
];

/**
 * All permissions of the reader. A node is less trusted than the operator: an attacker on it sees the tokens that its kubelet
 * is sent, so they are not the operator's own.
 */
export const kubeletReaderRules: PolicyRule[] = [
  { apiGroups: [""], resources: ["nodes/stats"], verbs: ["get"] },
];
