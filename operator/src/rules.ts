/** All that the operator may do: what the chart's roles are generated from. */

import { shardLeaseNames } from "@slipway/controller-runtime";
import { organizationRules as backupOrganizationRules, rules as backupRules } from "./backups/controller.ts";
import { rules as budgetRules } from "./budgets/controller.ts";
import { organizationRules as buildOrganizationRules, rules as buildRules } from "./builds/controller.ts";
import { LEASE_NAME } from "./config.ts";
import {
  namespaceRules as databaseNamespaceRules,
  organizationRules as databaseOrganizationRules,
  rules as databaseRules,
} from "./databases/rules.ts";
import {
  organizationRules as domainClaimOrganizationRules,
  rules as domainClaimRules,
} from "./domains/controller.ts";
import {
  organizationRules as gitConnectionOrganizationRules,
  rules as gitConnectionRules,
} from "./git/controller.ts";
import {
  organizationRules as jobRunOrganizationRules,
  rules as jobRunRules,
} from "./jobs/runs/controller.ts";
import {
  namespaceRules as observeNamespaceRules,
  organizationRules as observeOrganizationRules,
  rules as observeRules,
} from "./metrics/kubelet-token.ts";
import {
  organizationRules as notificationOrganizationRules,
  rules as notificationRules,
} from "./notifications/controller.ts";
import { defaultNamespaceRules as clusterAddressRules } from "./organizations/cluster-addresses.ts";
import {
  organizationRules as organizationControllerOrganizationRules,
  rules as organizationControllerRules,
} from "./organizations/controller.ts";
import {
  organizationRules as projectOrganizationRules,
  rules as projectRules,
} from "./projects/controller.ts";
import { eventRules, type PolicyRule } from "./rbac.ts";
import {
  organizationRules as undeleteOrganizationRules,
  rules as undeleteRules,
} from "./undelete/controller.ts";

/** For a ClusterRole: one rule for each API group, resource and list of names, in order. */
export const clusterRules: PolicyRule[] = mergeRules([
  ...organizationControllerRules,
  ...projectRules,
  ...domainClaimRules,
  ...jobRunRules,
  ...observeRules,
  ...databaseRules,
  ...backupRules,
  ...undeleteRules,
  ...notificationRules,
  ...budgetRules,
]);

/** For a ClusterRole that is bound in organizations' namespaces alone. */
export const organizationRules: PolicyRule[] = mergeRules([
  ...organizationControllerOrganizationRules,
  ...projectOrganizationRules,
  ...domainClaimOrganizationRules,
  ...jobRunOrganizationRules,
  ...observeOrganizationRules,
  ...databaseOrganizationRules,
  ...backupOrganizationRules,
  ...undeleteOrganizationRules,
  ...notificationOrganizationRules,
]);

/** Of the process that receives requests for projects that sleep. */
export { activatorRules } from "./sleep/activator/rbac.ts";

/** In addition to them where builds are enabled: in every namespace, in organizations' and in that of builds. */
export const buildsRules: PolicyRule[] = mergeRules([...buildRules, ...gitConnectionRules]);
export const buildsOrganizationRules: PolicyRule[] = mergeRules([
  ...buildOrganizationRules,
  ...gitConnectionOrganizationRules,
]);
export { buildsNamespaceRules } from "./builds/controller.ts";
/** For the service account whose tokens kubelets are shown. */
export { kubeletReaderRules } from "./metrics/kubelet-token.ts";
/** In addition to them where the platform is backed up on a schedule. */
export { logDrainRules, platformBackupRules } from "./organizations/controller.ts";

/** For a Role in the namespace `default`: Events about what is in no namespace, and where the apiserver is. */
export const defaultNamespaceRules: PolicyRule[] = [...clusterAddressRules, ...eventRules];

/** For a Role in the operator's own namespace: the leader's Lease, tokens for kubelets. */
export const namespaceRules: PolicyRule[] = [
  { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"] },
  {
    apiGroups: ["coordination.k8s.io"],
    resources: ["leases"],
    // Of every shard: nobody leads one while another number of shards is led.
    resourceNames: shardLeaseNames(LEASE_NAME),
    verbs: ["get", "update"],
  },
  ...observeNamespaceRules,
  ...databaseNamespaceRules,
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
