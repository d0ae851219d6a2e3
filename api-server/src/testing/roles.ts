import { organizationNamespace } from "@slipway/crds";
import { customResource, KubeClient, type KubernetesObject, loadKubeConfig, resources } from "@slipway/kube";
import { clusterRules, organizationRules } from "../rbac.ts";

/** The API server's own roles on a real apiserver, so that a rule that is missing in them fails a test. */

const USER = "test:api-server";
const ROLE = "slipway-api-server";
const ORGANIZATION_ROLE = "slipway-api-server-organization";

const rbac = (plural: string, kind: string) =>
  customResource("rbac.authorization.k8s.io", "v1", plural, kind, false);
type ClusterRole = KubernetesObject & { rules: unknown };
type Binding = KubernetesObject & { subjects: unknown; roleRef: unknown };

/** What binds one of the roles, everywhere or in one organization's namespace. */
const bindingOf = (role: string, namespace?: string): Binding => ({
  metadata: { name: role, namespace },
  subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: USER }],
  roleRef: { kind: "ClusterRole", apiGroup: "rbac.authorization.k8s.io", name: role },
});

/** Makes the roles; binds the one that counts everywhere. */
export async function createRoles(admin: KubeClient): Promise<void> {
  const roles = rbac("clusterroles", "ClusterRole");
  await admin.create<ClusterRole>(roles, { metadata: { name: ROLE }, rules: clusterRules });
  await admin.create<ClusterRole>(roles, { metadata: { name: ORGANIZATION_ROLE }, rules: organizationRules });
  await admin.create(rbac("clusterrolebindings", "ClusterRoleBinding"), bindingOf(ROLE));
}

/** The operator's part: one of the guards of an organization's namespace. */
export async function bindInOrganization(admin: KubeClient, organizationId: string): Promise<void> {
  await admin.create(
    resources.roleBindings,
    bindingOf(ORGANIZATION_ROLE, organizationNamespace(organizationId)),
  );
}

/** A client that may what the roles allow, and no more. */
export function restrictedClient(kubeconfig: string): KubeClient {
  const config = loadKubeConfig({ file: kubeconfig });
  const user = config.getCurrentUser();
  config.users = [{ ...user, name: user?.name ?? "", impersonateUser: USER }];
  return KubeClient.fromConfig(config);
}
