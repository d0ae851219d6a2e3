/** An account that may what a controller's own rules say, and nothing else: what is missing there is a 403 in a test. */

import type { KubeConfig } from "@kubernetes/client-node";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { run } from "../../../hack/lib/exec.ts";
import type { PolicyRule } from "../../../operator/src/rbac.ts";
import type { TestCluster } from "./harness.ts";

/**
 * @param namespace where the account is
 * @param cluster rules in every namespace
 * @param namespaced rules by namespace
 * @returns a configuration that acts as the account
 */
export async function grantedConfig(
  { api }: TestCluster,
  namespace: string,
  {
    cluster,
    namespaced,
  }: { cluster: readonly PolicyRule[]; namespaced: Record<string, readonly PolicyRule[]> },
): Promise<KubeConfig> {
  const kubectl = (args: string[], input?: string) =>
    run(api.binary, ["kubectl", "--kubeconfig", api.kubeconfig, ...args], { input });
  const name = "operator";
  const apiVersion = "rbac.authorization.k8s.io/v1";
  const pair = (kind: string, rules: readonly object[], where?: string) => [
    { apiVersion, kind, metadata: { name, namespace: where }, rules },
    {
      apiVersion,
      kind: `${kind}Binding`,
      metadata: { name, namespace: where },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name },
      subjects: [{ kind: "ServiceAccount", name, namespace }],
    },
  ];
  const events = { apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create", "patch"] };
  const items = [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } },
    ...pair("ClusterRole", [...cluster, events]),
    ...Object.entries(namespaced).flatMap(([where, rules]) => pair("Role", rules, where)),
  ];
  await kubectl(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  const token = (await kubectl(["-n", namespace, "create", "token", name])).trim();
  const config = loadKubeConfig({ file: api.kubeconfig });
  config.users = [{ name, token }];
  config.contexts = config.contexts.map((context) => ({ ...context, user: name }));
  return config;
}
