import { existsSync } from "node:fs";
import { KubeConfig } from "@kubernetes/client-node";

/** Where to find the cluster. */
export interface LoadKubeConfigOptions {
  /** A kubeconfig file; over the environment when given. */
  file?: string;
  /** A context of that kubeconfig; its current one when absent. */
  context?: string;
  env?: NodeJS.ProcessEnv;
}

/**
 * The cluster that this process talks to: `options.file`, else `KUBECONFIG`, else the service account of the pod, else
 * `~/.kube/config`.
 *
 * @throws Error when there is none, or when the context does not exist.
 */
export function loadKubeConfig(options: LoadKubeConfigOptions = {}): KubeConfig {
  const env = options.env ?? process.env;
  const config = new KubeConfig();
  if (options.file) {
    config.loadFromFile(options.file);
  } else if (env.KUBECONFIG) {
    config.loadFromFile(firstExisting(env.KUBECONFIG));
  } else if (env.KUBERNETES_SERVICE_HOST) {
    config.loadFromCluster();
  } else {
    config.loadFromDefault();
  }
  if (options.context) {
    if (!config.getContextObject(options.context)) {
      throw new Error(`kubeconfig has no context ${options.context}`);
    }
    config.setCurrentContext(options.context);
  }
  if (!config.getCurrentCluster()) {
    throw new Error("no Kubernetes cluster configured: set KUBECONFIG");
  }
  return config;
}

function firstExisting(list: string): string {
  const files = list.split(":").filter((file) => file !== "");
  const found = files.find((file) => existsSync(file));
  if (!found) {
    throw new Error(`KUBECONFIG names no existing file: ${list}`);
  }
  return found;
}
