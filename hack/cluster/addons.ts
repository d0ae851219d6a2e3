import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "../lib/paths.ts";
import { applyManifests, type Kubectl } from "./kubectl.ts";

/** Names of the manifests under hack/cluster/addons. */
export type AddonManifest = "netpol" | "coredns" | "local-path" | "traefik" | "metrics-server";

/** Workloads that have to be up before the cluster is called ready, as namespace and name of a Deployment. */
const deployments = [
  ["kube-system", "coredns"],
  ["local-path-storage", "local-path-provisioner"],
  ["slipway-ingress", "traefik"],
  ["kube-system", "metrics-server"],
] as const;

/**
 * Fills in the `${NAME}`s of a manifest.
 * @throws Error naming a placeholder without a value
 */
export function fillIn(manifest: string, values: Record<string, string>): string {
  return manifest.replace(/\$\{([A-Z_]+)\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`no value for ${name}`);
    return value;
  });
}

/** Applies addons' manifests. */
export async function applyAddons(
  kubectl: Kubectl,
  names: AddonManifest[],
  values: Record<string, string>,
  log: string,
): Promise<void> {
  const manifests: string[] = [];
  for (const name of names) {
    const text = await readFile(join(root, "hack/cluster/addons", `${name}.yaml`), "utf8");
    manifests.push(fillIn(text, values));
  }
  await applyManifests(kubectl, manifests.join("\n---\n"), log);
}

/** Waits until every addon's Deployment has rolled out. */
export async function waitForAddons(kubectl: Kubectl, log: string): Promise<void> {
  for (const [namespace, name] of deployments) {
    const args = ["rollout", "status", `deployment/${name}`, "--timeout=120s"];
    await kubectl(["-n", namespace, ...args], { log });
  }
}
