/** All that the operator may do: what the chart's roles are generated from. */

import { rules as domainClaimRules } from "./domainclaim/controller.ts";
import { rules as organizationRules } from "./organization/controller.ts";
import { rules as projectRules } from "./project/controller.ts";
import type { PolicyRule } from "./rbac.ts";

/** For a ClusterRole: one rule for each API group, resource and list of names, in order. */
export const clusterRules: PolicyRule[] = mergeRules([
  ...organizationRules,
  ...projectRules,
  ...domainClaimRules,
]);

/** For a ClusterRole that is bound in organizations' namespaces alone. */
export { organizationRules } from "./project/controller.ts";

/** For a Role in the operator's own namespace: the leader's Lease. */
export const namespaceRules: PolicyRule[] = [
  { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"] },
  {
    apiGroups: ["coordination.k8s.io"],
    resources: ["leases"],
    resourceNames: ["slipway-operator"],
    verbs: ["get", "update"],
  },
];

function mergeRules(rules: readonly PolicyRule[]): PolicyRule[] {
  const merged = new Map<string, PolicyRule>();
  for (const { apiGroups, resources, resourceNames, verbs } of rules) {
    for (const [group, resource] of apiGroups.flatMap((group) =>
      resources.map((name) => [group, name] as const),
    )) {
      const key = [group, resource, ...(resourceNames ?? [])].join("/");
      merged.set(key, {
        apiGroups: [group],
        resources: [resource],
        ...(resourceNames ? { resourceNames } : {}),
        verbs: [...new Set([...(merged.get(key)?.verbs ?? []), ...verbs])].sort(),
      });
    }
  }
  return [...merged].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, rule]) => rule);
}
