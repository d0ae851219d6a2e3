import { customResource, KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { organizationNamespace } from "@slipway/crds";
import { clusterRules, organizationRules } from "../../../api-server/src/rbac.ts";
import { projectResource } from "../../../api-server/src/resources.ts";
import { eventually } from "../processes/eventually.ts";

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

type Review = KubernetesObject & { spec: object; status?: { allowed: boolean } };

/**
 * The operator's part: one of the policies of an organization's namespace. Waits until it counts, since the apiserver receives
 * roles by a watch of its own: until then it answers 403.
 */
export async function bindInOrganization(admin: KubeClient, organizationId: string): Promise<void> {
  const namespace = organizationNamespace(organizationId);
  await admin.create(resources.roleBindings, bindingOf(ORGANIZATION_ROLE, namespace));
  const reviews = customResource(
    "authorization.k8s.io",
    "v1",
    "subjectaccessreviews",
    "SubjectAccessReview",
    false,
  );
  const { group, plural } = projectResource;
  const resourceAttributes = { namespace, verb: "create", group, resource: plural };
  await eventually(`the role in ${namespace}`, async () => {
    const { status } = await admin.create<Review>(reviews, { spec: { user: USER, resourceAttributes } });
    return status?.allowed;
  });
}

/** A client that may what the roles allow, and no more. */
export function restrictedClient(kubeconfig: string): KubeClient {
  const config = loadKubeConfig({ file: kubeconfig });
  const user = config.getCurrentUser();
  config.users = [{ ...user, name: user?.name ?? "", impersonateUser: USER }];
  return KubeClient.fromConfig(config);
}
