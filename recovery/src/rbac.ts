/** What the jobs may do in the cluster: what the chart's roles are generated from. */

import { PLATFORM_BACKUP, PLATFORM_VERIFICATION } from "@slipway/crds";
import { PLATFORM_SECRETS } from "./objects.ts";

interface PolicyRule {
  apiGroups: readonly string[];
  resources: readonly string[];
  resourceNames?: readonly string[];
  verbs: readonly string[];
}

/** Custom resources of a backup in every namespace, and which namespaces are organizations'. */
export const backupClusterRules: PolicyRule[] = [
  { apiGroups: [""], resources: ["namespaces"], verbs: ["list"] },
  {
    apiGroups: ["slipway.dev"],
    resources: [
      "backups",
      "builds",
      "domainclaims",
      "gitconnections",
      "logdrains",
      "projects",
      "variablegroups",
    ],
    verbs: ["list"],
  },
];

/** In organizations' namespaces alone: the operator binds it there. */
export const backupOrganizationRules: PolicyRule[] = [
  { apiGroups: [""], resources: ["secrets", "services"], verbs: ["list"] },
];

const reportingRules = (cronJob: string, outcomes: readonly string[]): PolicyRule[] => [
  { apiGroups: [""], resources: ["configmaps"], resourceNames: [PLATFORM_BACKUP], verbs: outcomes },
  { apiGroups: ["batch"], resources: ["cronjobs"], resourceNames: [cronJob], verbs: ["get"] },
  { apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create"] },
];

/** In the platform's own namespace. */
export const backupNamespaceRules: PolicyRule[] = [
  { apiGroups: [""], resources: ["secrets"], resourceNames: PLATFORM_SECRETS, verbs: ["get"] },
  ...reportingRules(PLATFORM_BACKUP, ["patch"]),
];
export const verificationNamespaceRules: PolicyRule[] = reportingRules(PLATFORM_VERIFICATION, [
  "get",
  "patch",
]);

/**
 * For dry runs alone: the chart's ValidatingAdmissionPolicy `slipway-platform-verification` refuses what would be stored. DomainClaims are
 * in no namespace.
 */
export const verificationClusterRules: PolicyRule[] = [
  { apiGroups: ["slipway.dev"], resources: ["domainclaims"], verbs: ["create"] },
];

/** Likewise, in the namespace for tests. */
export const verificationScratchRules: PolicyRule[] = [
  { apiGroups: [""], resources: ["secrets", "services"], verbs: ["create"] },
  {
    apiGroups: ["slipway.dev"],
    resources: ["backups", "builds", "gitconnections", "logdrains", "projects", "variablegroups"],
    verbs: ["create"],
  },
];
