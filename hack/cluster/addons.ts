import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "../lib/paths.ts";
import { binaryFile } from "./binaries.ts";
import { applyManifests, type Kubectl } from "./kubectl.ts";

/** Names of the manifests under hack/cluster/addons. */
export type AddonManifest = "netpol" | "volumes" | "coredns" | "traefik" | "metrics-server" | "registry";

/** The Deployment that each addon is up with, as namespace and name. */
const deployments: Partial<Record<AddonManifest, [string, string]>> = {
  coredns: ["kube-system", "coredns"],
  traefik: ["slipway-ingress", "traefik"],
  "metrics-server": ["kube-system", "metrics-server"],
  registry: ["kube-system", "registry"],
};

/** Definitions of its own kinds that come with an addon's program. */
const definitions: Partial<Record<AddonManifest, string>> = {
  traefik: binaryFile("traefik", "definitions.yaml"),
};

/**
 * Fills in the `${NAME}`s of a manifest.
 * @throws Error naming a placeholder without a value
 */
export function fillIn(manifest: string, values: Record<string, string>): string {
  return manifest.replace(/\$\{([A-Z_]+)\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) {
      throw new Error(`no value for ${name}`);
    }
    return value;
  });
}

/** Applies addons' manifests, after the definitions of their own kinds: kubectl looks kinds up before it applies anything. */
export async function applyAddons(
  kubectl: Kubectl,
  names: AddonManifest[],
  values: Record<string, string>,
  log: string,
): Promise<void> {
  const files = names.flatMap((name) => definitions[name] ?? []);
  if (files.length > 0) {
    const kinds = await together(files);
    await applyManifests(kubectl, kinds, log);
    await kubectl(["wait", "--for=condition=Established", "--timeout=60s", "-f", "-"], { input: kinds, log });
  }
  const manifests = await together(names.map((name) => join(root, "hack/cluster/addons", `${name}.yaml`)));
  await applyManifests(kubectl, fillIn(manifests, values), log);
}

/** Files of YAML as one. */
async function together(files: readonly string[]): Promise<string> {
  return (await Promise.all(files.map((file) => readFile(file, "utf8")))).join("\n---\n");
}

/** Waits until the Deployments of these addons have rolled out. */
export async function waitForAddons(kubectl: Kubectl, names: AddonManifest[], log: string): Promise<void> {
  for (const name of names) {
    const deployment = deployments[name];
    if (!deployment) {
      continue;
    }
    const args = ["rollout", "status", `deployment/${deployment[1]}`, "--timeout=120s"];
    await kubectl(["-n", deployment[0], ...args], { log });
  }
}
