import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  customResource,
  type KubeClient,
  type KubernetesObject,
  resources,
} from "@slipway/controller-runtime";
import type { TestApiserver } from "../../hack/cluster/apiserver.ts";

const clusterRoleBindings = customResource(
  "rbac.authorization.k8s.io",
  "v1",
  "clusterrolebindings",
  "ClusterRoleBinding",
  false,
);

interface TokenRequest extends KubernetesObject {
  spec: { expirationSeconds: number };
  status?: { token: string };
}

/**
 * The environment of a process that has a service account which may do everything, as in a pod: with a kubeconfig it would have a client's
 * library in memory that no pod has.
 * @param folder where the account is written
 */
export async function serviceAccountEnvironment(
  kube: KubeClient,
  { url, etcd }: Pick<TestApiserver, "url" | "etcd">,
  folder: string,
): Promise<Record<string, string>> {
  mkdirSync(folder, { recursive: true });
  copyFileSync(etcd.authority, join(folder, "ca.crt"));
  writeFileSync(join(folder, "token"), await serviceAccountToken(kube));
  const { hostname, port } = new URL(url);
  return {
    KUBERNETES_SERVICE_ACCOUNT_DIR: folder,
    KUBERNETES_SERVICE_HOST: hostname,
    KUBERNETES_SERVICE_PORT: port,
  };
}

async function serviceAccountToken(kube: KubeClient): Promise<string> {
  const metadata = { name: "bench", namespace: "default" };
  await kube.create(resources.serviceAccounts, { metadata });
  await kube.create(clusterRoleBindings, {
    metadata: { name: metadata.name },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
    subjects: [{ kind: "ServiceAccount", ...metadata }],
  } as KubernetesObject);
  const body: TokenRequest = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    metadata,
    spec: { expirationSeconds: 24 * 3_600 },
  };
  const answer = await kube.create<TokenRequest>(resources.serviceAccounts, body, { subresource: "token" });
  return answer.status?.token ?? "";
}
