import type { PolicyRule } from "../../rbac.ts";

/**
 * What the activator may do. An admission policy of the chart confines the patch to one annotation: it asks the operator to end a sleep,
 * and changes nothing else.
 */
export const activatorRules: PolicyRule[] = [
  { apiGroups: ["slipway.dev"], resources: ["projects"], verbs: ["list", "watch", "patch"] },
  { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"] },
];
