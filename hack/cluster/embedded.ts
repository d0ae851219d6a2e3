import { mkdir } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { aptPackages, importImage, type Registry } from "../images/index.ts";
import { writeFileAtomic } from "../lib/files.ts";
import { adminKubeconfig, confDir, logDir, runDir, stateDir } from "../lib/paths.ts";
import { say, step } from "../lib/steps.ts";
import { waitFor } from "../lib/wait.ts";
import { type AddonName, addonImage } from "./addon-images.ts";
import { applyAddons, waitForAddons } from "./addons.ts";
import { addresses, gitHost, ports, registryHost } from "./addresses.ts";
import { ensureBinaries, ensureBinary, missingBinaries } from "./binaries.ts";
import { buildsRegistry, ensureBuilds } from "./builds/index.ts";
import type { Cluster } from "./cluster.ts";
import {
  type Binaries,
  containerd,
  controlPlane,
  netpol,
  nodeAgents,
  paths,
  registry,
  volumes,
} from "./components.ts";
import { renderContainerd, writeConfigs } from "./configs.ts";
import { type Kubectl, kubectlFor } from "./kubectl.ts";
import { ensureNetwork } from "./network.ts";
import { claimMachine } from "./ownership.ts";
import { clusterPackages, ensurePackages } from "./packages.ts";
import { ensurePki } from "./pki.ts";
import { type Daemon, ensureDaemon } from "./processes.ts";
import type { BinaryName } from "./programs.ts";
import { linkTools } from "./tools.ts";

export interface EmbeddedOptions {
  apiPort: number;
  ingressPort: number;
}

/** What the first application needs. */
const firstBinaries: BinaryName[] = [
  "kubernetes",
  "helm",
  "registry",
  "netpol",
  "volumes",
  "pause",
  "coredns",
  "traefik",
];
const nodeAddons = ["coredns", "traefik"] as const satisfies AddonName[];
/** No application waits for it: where it has to be built, that is done once the platform runs. */
const LATE_ADDON = "metrics-server";

/** Every program of the cluster itself. */
export const neededBinaries: BinaryName[] = [...firstBinaries, LATE_ADDON];

/** Log of everything that the cluster's steps run. */
const log = join(logDir, "up.log");

/**
 * Starts the embedded cluster, or repairs it: what runs as it should is left alone, what ended or
 * changed is started again. State is in `.slipway/`.
 */
export async function ensureEmbedded(options: EmbeddedOptions): Promise<Cluster> {
  for (const dir of [stateDir, logDir, confDir]) {
    await mkdir(dir, { recursive: true, mode: 0o755 });
  }
  await mkdir(runDir, { recursive: true, mode: 0o755 });
  // The first checkout that starts one owns the machine's cluster until `hack/down.sh`, or until none of its processes runs any more.
  await claimMachine();

  const install = async () => {
    const added = await ensurePackages([...clusterPackages, ...aptPackages], log);
    say(added.length ? `installed ${added.join(" ")}` : "all there");
  };
  await step("Debian packages", install, log);
  const binaries = await step("cluster binaries", ensureClusterBinaries);
  await linkTools(binaries.kubernetes, binaries.helm);
  const pki = await step("certificates", ensurePki, log);
  await step("network", ensureNetwork, log);
  await writeConfigs(pki);
  await step("container runtime and registry", () => ensureDaemons([containerd(), registry(binaries, pki)]));
  const late = missingBinaries([LATE_ADDON]).length > 0;
  const addons = [...nodeAddons, ...(late ? [] : ([LATE_ADDON] as const))];
  const images = await step("images of the cluster", () => ensureImages(["pause", ...addons]), log);
  // A changed pause image changes the configuration, and so restarts the runtime; its containers keep running.
  const pause = images.IMAGE_PAUSE;
  if (!pause) {
    throw new Error("no pause image");
  }
  await writeFileAtomic(paths.containerdConfig, renderContainerd(pause));
  await step("control plane", () => ensureDaemons([containerd(), ...controlPlane(binaries, pki)]));
  const kubectl = kubectlFor([binaries.kubernetes, "kubectl"], adminKubeconfig);
  await step("network policies and volumes", async () => {
    await removeFormerProvisioner(kubectl);
    await applyAddons(kubectl, ["netpol", "volumes"], {}, log);
    await ensureDaemons([netpol(binaries, pki), volumes(binaries, pki)]);
  });
  await step("node", () => ensureDaemons(nodeAgents(binaries, pki)));
  const values = {
    ...images,
    CLUSTER_DOMAIN: addresses.clusterDomain,
    DNS_ADDRESS: addresses.dns,
    HOST_ADDRESS: "127.0.0.1",
    INGRESS_NODES: "{}",
    API_PORT: String(options.apiPort),
    INGRESS_PORT: String(options.ingressPort),
    KUBELET_TLS: "--kubelet-certificate-authority=/cluster-ca/ca.crt",
  };
  const services = async () => {
    await applyAddons(kubectl, addons, values, log);
    await waitForNode(kubectl);
    await waitForAddons(kubectl, [...nodeAddons], log);
  };
  await step("cluster services", services, log);
  const host: Registry = { host: `127.0.0.1:${ports.registry}`, caFile: pki.authority.cert };
  return {
    kind: "embedded",
    kubeconfig: adminKubeconfig,
    kubectl,
    helm: binaries.helm,
    registry: { push: host, pull: registryHost },
    importImage: async (image) => {
      await importImage(image, paths.containerdSocket);
    },
    apiUrl: `http://127.0.0.1:${options.apiPort}`,
    ingressUrl: `http://127.0.0.1:${options.ingressPort}`,
    networks: {
      pods: addresses.podCidr,
      apiserver: [`${addresses.apiService}/32`, `${addresses.node}/32`],
      nodes: [`${addresses.node}/32`],
      denied: [addresses.podCidr, addresses.serviceCidr, "169.254.0.0/16", ...machineAddresses()],
    },
    podsReachable: true,
    databaseHost: addresses.node,
    collector: { podLogs: paths.podLogs, stateFolder: join(stateDir, "collector") },
    builds: {
      registry: await buildsRegistry(pki),
      git: { host: gitHost, caFile: pki.authority.cert },
      ensure: () => ensureBuilds(pki, options.apiPort, log),
    },
    // It is ready once it has two samples of everything.
    waitForSlowParts: async () => {
      if (late) {
        await applyAddons(kubectl, [LATE_ADDON], { ...values, ...(await ensureImages([LATE_ADDON])) }, log);
      }
      await waitForAddons(kubectl, [LATE_ADDON], log);
    },
  };
}

/** This machine's own IPv4 addresses, behind which its other services listen, as CIDRs. */
function machineAddresses(): string[] {
  const all = Object.entries(networkInterfaces()).filter(([name]) => name !== addresses.bridge);
  const own = all
    .flatMap(([, list]) => list ?? [])
    .filter((entry) => entry.family === "IPv4" && !entry.internal);
  return [...new Set(own.map((entry) => `${entry.address}/32`))].sort();
}

async function ensureClusterBinaries(): Promise<Binaries & { helm: string }> {
  const missing = missingBinaries(firstBinaries);
  say(missing.length ? `to build: ${missing.join(", ")}; kept for every later run` : "all built");
  await ensureBinaries(missing);
  return {
    kubernetes: await ensureBinary("kubernetes"),
    registry: await ensureBinary("registry"),
    netpol: await ensureBinary("netpol"),
    volumes: await ensureBinary("volumes"),
    helm: await ensureBinary("helm"),
  };
}

/** Clusters of earlier versions had a provisioner in a pod. No kubelet may run yet that ends it: nothing waits for that. */
async function removeFormerProvisioner(kubectl: Kubectl): Promise<void> {
  const name = "local-path-provisioner";
  const former = ["namespace/local-path-storage", `clusterrole/${name}`, `clusterrolebinding/${name}`];
  await kubectl(["delete", ...former, "--ignore-not-found", "--wait=false"], { log });
}

async function ensureDaemons(daemons: Daemon[]): Promise<void> {
  for (const daemon of daemons) {
    const did = await ensureDaemon(daemon);
    say(`${daemon.name} ${did === "kept" ? "runs" : did}`);
  }
}

/** Builds images of the cluster's own and imports them into the runtime; returns their references by placeholder. */
async function ensureImages(names: readonly AddonName[]): Promise<Record<string, string>> {
  const references: Record<string, string> = {};
  for (const name of names) {
    const image = await addonImage(name);
    if (await importImage(image, paths.containerdSocket)) {
      say(`${name} imported`);
    }
    references[`IMAGE_${name.toUpperCase().replaceAll("-", "_")}`] = image.reference;
  }
  return references;
}

async function waitForNode(kubectl: Kubectl): Promise<void> {
  await waitFor("node Ready", 90_000, async () => {
    const query = `-o=jsonpath={.status.conditions[?(@.type=="Ready")].status}`;
    return (await kubectl(["get", "node", addresses.nodeName, query])) === "True";
  });
}
