/** All that the operator may do: what the chart's roles are generated from. */

import { rules as domainClaimRules } from "./domainclaim/controller.ts";
import { rules as organizationRules } from "./organization/controller.ts";
import { rules as projectRules } from "./project/controller.ts";
import type { PolicyRule } from "./rbac.ts";

/** For a ClusterRole: one rule for each API group and resource, in order. */
export const clusterRules: PolicyRule[] = mergeRules([
  ...organizationRules,
  ...projectRules,
  ...domainClaimRules,
]);

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
  const verbs = new Map<string, Set<string>>();
  for (const rule of rules) {
    for (const key of rule.apiGroups.flatMap((group) => rule.resources.map((name) => `${group}/${name}`))) {
      verbs.set(key, new Set([...(verbs.get(key) ?? []), ...rule.verbs]));
    }
  }
  return [...verbs]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, allowed]) => {
      const slash = key.indexOf("/");
      return {
        apiGroups: [key.slice(0, slash)],
        resources: [key.slice(slash + 1)],
        verbs: [...allowed].sort(),
      };
    });
}
