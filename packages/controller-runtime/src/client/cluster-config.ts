import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { KubeConfig } from "@kubernetes/client-node";

/** What is needed of a kubeconfig: where the cluster is, and what authenticates a request. */
export type ClusterConfig = Pick<KubeConfig, "getCurrentCluster" | "applyToHTTPSOptions">;

/**
 * The cluster that this process talks to: `KUBECONFIG`, else the service account of the pod, else `~/.kube/config`. A pod reads its
 * service account without client-node, whose import alone takes a process 87 MiB.
 * @param folder the mounted service account of a pod; that of `KUBERNETES_SERVICE_ACCOUNT_DIR` when it is set
 * @throws Error when there is none
 */
export async function loadClusterConfig(
  env: NodeJS.ProcessEnv = process.env,
  folder = env.KUBERNETES_SERVICE_ACCOUNT_DIR ?? "/var/run/secrets/kubernetes.io/serviceaccount",
): Promise<ClusterConfig> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443" } = env;
  if (env.KUBECONFIG || !host) {
    const { loadKubeConfig } = await import("./kube-config.ts");
    return loadKubeConfig({ env });
  }
  return podConfig(`https://${host.includes(":") ? `[${host}]` : host}:${port}`, folder);
}

/** The kubelet replaces both files, so each use reads them again. */
function podConfig(server: string, folder: string): ClusterConfig {
  const caFile = join(folder, "ca.crt");
  return {
    getCurrentCluster: () => ({ name: "cluster", server, caFile, skipTLSVerify: false }),
    async applyToHTTPSOptions(options) {
      const [ca, token] = await Promise.all([
        readFile(caFile, "utf8"),
        readFile(join(folder, "token"), "utf8"),
      ]);
      options.ca = ca;
      options.headers = { ...options.headers, Authorization: `Bearer ${token.trim()}` };
    },
  };
}
