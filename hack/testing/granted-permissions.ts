/** Which permissions the chart grants, and which of them nobody uses. */
import {
  adminClusterRules,
  adminOrganizationRules,
  clusterRules as apiServerClusterRules,
  organizationRules as apiServerOrganizationRules,
} from "@slipway/api-server/rbac";
import {
  buildsNamespaceRules,
  buildsOrganizationRules,
  buildsRules,
  clusterRules,
  defaultNamespaceRules,
  namespaceRules,
  organizationRules,
} from "@slipway/operator/rules";
import { type PlatformProcess, permission } from "./platform-calls.ts";

interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

const RULES: Readonly<Record<PlatformProcess, readonly PolicyRule[]>> = {
  operator: [
    ...clusterRules,
    ...organizationRules,
    ...namespaceRules,
    ...defaultNamespaceRules,
    ...buildsRules,
    ...buildsOrganizationRules,
    ...buildsNamespaceRules,
  ],
  "api-server": [...apiServerClusterRules, ...apiServerOrganizationRules],
  admin: [...adminClusterRules, ...adminOrganizationRules],
};
const GITHUB =
  "connects an account of GitHub: admin.integration.test.ts, against an in-memory kube-apiserver";

/** Permissions that requests to kube-apiservers of a test run need rarely or never, each with the reason why it is granted. */
const UNSEEN: Readonly<Record<string, string>> = {
  "operator rbac.authorization.k8s.io/clusterroles bind": "checked when a RoleBinding is written",
  "operator slipway.dev/projects/finalizers update":
    "checked by the admission plugin OwnerReferencesPermissionEnforcement, where it is enabled",
  "operator slipway.dev/backups/finalizers update":
    "checked by the admission plugin OwnerReferencesPermissionEnforcement, where it is enabled",
  "operator core/configmaps update": "Patroni's Role grants it, which only a subject that has it may create",
  "operator core/nodes get": "reads whether the node of a run's pod is there, when its log cannot be read",
  "operator slipway.dev/backups delete": "deletes an expired Backup: backups/retention.test.ts, in memory",
  "operator slipway.dev/domainclaims get":
    "reads a claim that the cache does not have yet: domains/claims.test.ts, in memory",
  "operator cert-manager.io/certificates get":
    "reads why a certificate was not issued: domains/domains.integration.test.ts, with an issuer",
  "operator slipway.dev/builds delete":
    "deletes a Build that history no longer keeps: builds/completion.test.ts, in memory",
  "api-server slipway.dev/domainclaims patch":
    "keeps a claim that its project wants again: projects/change.test.ts, in memory",
  "admin core/secrets create": GITHUB,
  "admin slipway.dev/gitconnections get": GITHUB,
  "admin slipway.dev/gitconnections list": GITHUB,
  "admin slipway.dev/gitconnections create": GITHUB,
  "admin slipway.dev/gitconnections delete": GITHUB,
  "admin slipway.dev/gitconnections patch": GITHUB,
  "admin slipway.dev/gitconnections/status patch": GITHUB,
};

/** Every permission that the chart grants, as `process group/resource verb`. */
export function grantedPermissions(): string[] {
  const granted = Object.entries(RULES).flatMap(([process, rules]) =>
    rules.flatMap(({ apiGroups, resources, verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) =>
          verbs.map((verb) => `${permission(process as PlatformProcess, group, resource)} ${verb}`),
        ),
      ),
    ),
  );
  return [...new Set(granted)].sort();
}

/**
 * What is wrong with the granted permissions, given those that requests needed: one that none needed, and a reason above for one
 * that is not granted.
 */
export function unusedPermissions(
  used: ReadonlySet<string>,
  granted: readonly string[] = grantedPermissions(),
  unseen: Readonly<Record<string, string>> = UNSEEN,
): string[] {
  const problems = granted
    .filter((name) => !used.has(name) && unseen[name] === undefined)
    .map((name) => `${name}: granted, and no request needed it`);
  const outdated = Object.keys(unseen)
    .filter((name) => !granted.includes(name))
    .map((name) => `${name}: has a reason why no request needs it, but is not granted`);
  return [...problems, ...outdated];
}
