import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";
import { aptPackages, buildImage, importImage, type Registry } from "../images/index.ts";
import { sampleJob } from "../images/samples.ts";
import { writeFileAtomic } from "../lib/env-file.ts";
import { adminKubeconfig, confDir, logDir, root, runDir, stateDir } from "../lib/paths.ts";
import { say, step, UserError } from "../lib/steps.ts";
import { waitFor } from "../lib/wait.ts";
import { addonImage, addonNames } from "./addon-images.ts";
import { applyAddons, waitForAddons } from "./addons.ts";
import { addresses, ports, registryHost } from "./addresses.ts";
import { type BinaryName, ensureBinary, missingBinaries } from "./binaries.ts";
import type { Cluster } from "./cluster.ts";
import {
  type Binaries,
  containerd,
  controlPlane,
  nodeAgents,
  paths,
  registry,
  resolvConf,
} from "./components.ts";
import { cniConfig, containerdConfig, registryConfig, registryHosts } from "./containerd.ts";
import { auditPolicy } from "./control-plane.ts";
import { type Kubectl, kubectlFor } from "./kubectl.ts";
import { ensureNetwork } from "./network.ts";
import { kubeletConfig, proxyConfig } from "./node-config.ts";
import { clusterPackages, ensurePackages } from "./packages.ts";
import { ensurePki, type Pki } from "./pki.ts";
import { type Daemon, ensureDaemon } from "./processes.ts";

export interface EmbeddedOptions {
  apiPort: number;
  ingressPort: number;
}

/** In the order in which they are wanted: those that the machine's own processes need come first. */
const needed: BinaryName[] = [
  "kubernetes",
  "helm",
  "registry",
  //NETPOL "netpol",
  "pause",
  "coredns",
  "local-path",
  "metrics-server",
  "traefik",
];

/** Log of everything that the cluster's steps run. */
const log = join(logDir, "up.log");

/**
 * Brings up the embedded cluster, or repairs it: what runs as it should is left alone, what died or
 * changed is started again. State is in `.slipway/`.
 */
export async function ensureEmbedded(options: EmbeddedOptions): Promise<Cluster> {
  for (const dir of [stateDir, logDir, confDir]) await mkdir(dir, { recursive: true, mode: 0o755 });
  await mkdir(runDir, { recursive: true, mode: 0o755 });
  await claimMachine();

  await step(
    "Debian packages",
    async () => {
      const added = await ensurePackages([...new Set([...clusterPackages, ...aptPackages])], log);
      say(added.length ? `installed ${added.join(" ")}` : "all there");
    },
    log,
  );
  const binaries = await step("cluster binaries", ensureBinaries);
  const pki = await step("certificates", ensurePki, log);
  await step("network", ensureNetwork, log);
  await writeConfigs(pki);
  await step("container runtime and registry", () => ensureDaemons([containerd(), registry(binaries, pki)]));
  const images = await step("images of the cluster", ensureImages, log);
  // A changed pause image changes the configuration, and so restarts the runtime; its containers go on.
  await writeFile(paths.containerdConfig, renderContainerd(images.IMAGE_PAUSE));
  await step("control plane", () => ensureDaemons([containerd(), ...controlPlane(binaries, pki)]));
  await step("node", () => ensureDaemons(nodeAgents(binaries, pki)));

  const kubectl = kubectlFor([binaries.kubernetes, "kubectl"], adminKubeconfig);
  await step(
    "cluster services",
    async () => {
      await applyAddons(
        kubectl,
        {
          ...images,
          CLUSTER_DOMAIN: addresses.clusterDomain,
          DNS_ADDRESS: addresses.dns,
          VOLUMES: paths.volumes,
          API_PORT: String(options.apiPort),
          INGRESS_PORT: String(options.ingressPort),
        },
        log,
      );
      await waitForNode(kubectl);
      await waitForAddons(kubectl, log);
    },
    log,
  );
  const host: Registry = { host: `127.0.0.1:${ports.registry}`, caFile: pki.authority.cert };
  return {
    kind: "embedded",
    kubeconfig: adminKubeconfig,
    context: undefined,
    kubectl,
    helm: binaries.helm,
    registry: { push: host, pull: registryHost },
    importImage: async (image) => {
      await importImage(image, paths.containerdSocket);
    },
    apiUrl: `http://127.0.0.1:${options.apiPort}`,
    ingressUrl: `http://127.0.0.1:${options.ingressPort}`,
    deniedCidrs: [addresses.podCidr, addresses.serviceCidr, "169.254.0.0/16"],
    podsReachable: true,
  };
}

/** One embedded cluster a machine: the first checkout that brings one up owns it until `hack/down.sh`. */
async function claimMachine(): Promise<void> {
  const file = join(runDir, "owner");
  const owner = await readFile(file, "utf8").catch(() => root);
  if (owner !== root) {
    throw new UserError(
      `this machine's embedded cluster belongs to ${owner}; take it down first: ${owner}/hack/down.sh`,
    );
  }
  await writeFileAtomic(file, root, 0o644);
}

async function ensureBinaries(): Promise<Binaries & { helm: string }> {
  const missing = missingBinaries(needed);
  say(missing.length ? `to build: ${missing.join(", ")}; kept for every later run` : "all built");
  for (const name of missing) await ensureBinary(name);
  return {
    kubernetes: await ensureBinary("kubernetes"),
    registry: await ensureBinary("registry"),
    netpol: "", //NETPOL
    helm: await ensureBinary("helm"),
  };
}

async function ensureDaemons(daemons: Daemon[]): Promise<void> {
  for (const daemon of daemons) {
    const did = await ensureDaemon(daemon);
    say(`${daemon.name} ${did === "kept" ? "runs" : did}`);
  }
}

function renderContainerd(sandboxImage: string): string {
  return containerdConfig({
    root: paths.containerd,
    state: join(runDir, "containerd"),
    socket: paths.containerdSocket,
    cniConfDir: paths.cniConfDir,
    registryConfigDir: paths.registryConfigDir,
    sandboxImage,
  });
}

async function writeConfigs(pki: Pki): Promise<void> {
  const authority = pki.authority.cert;
  const hosts = join(paths.registryConfigDir, registryHost);
  for (const dir of [paths.cniConfDir, hosts, paths.volumes, paths.podLogs, paths.registry]) {
    await mkdir(dir, { recursive: true });
  }
  await mkdir(paths.etcd, { recursive: true, mode: 0o700 });
  await writeFile(join(paths.cniConfDir, "10-slipway.conflist"), cniConfig(join(runDir, "ipam")));
  await writeFile(join(hosts, "hosts.toml"), registryHosts(authority));
  await writeFile(paths.registryConfig, registryConfig(paths.registry, pki.registry.cert, pki.registry.key));
  await writeFile(paths.auditPolicy, stringify(auditPolicy));
  await writeFile(paths.proxyConfig, proxyConfig(pki.kubeconfigs.proxy));
  const kubelet = {
    authority,
    server: pki.kubelet,
    containerdSocket: paths.containerdSocket,
    resolvConf,
    podLogsDir: paths.podLogs,
  };
  await writeFile(paths.kubeletConfig, kubeletConfig(kubelet));
  // The first start of the runtime, without which no image can be imported, names no pause image yet.
  const current = await readFile(paths.containerdConfig, "utf8").catch(() => "");
  if (current === "")
    await writeFile(paths.containerdConfig, renderContainerd("slipway.local/slipway/pause:none"));
}

/** Builds the cluster's own images and brings them into the runtime; answers their references by placeholder. */
async function ensureImages(): Promise<Record<string, string> & { IMAGE_PAUSE: string }> {
  const references: Record<string, string> = {};
  for (const name of addonNames) {
    const image = await addonImage(name);
    if (await importImage(image, paths.containerdSocket)) say(`${name} imported`);
    references[`IMAGE_${name.toUpperCase().replaceAll("-", "_")}`] = image.reference;
  }
  const shell = await buildImage(sampleJob());
  if (await importImage(shell, paths.containerdSocket)) say("shell imported");
  references.IMAGE_SHELL = shell.reference;
  const pause = references.IMAGE_PAUSE;
  if (!pause) throw new Error("no pause image");
  return { ...references, IMAGE_PAUSE: pause };
}

async function waitForNode(kubectl: Kubectl): Promise<void> {
  await waitFor("node Ready", 90_000, async () => {
    const query = `-o=jsonpath={.status.conditions[?(@.type=="Ready")].status}`;
    return (await kubectl(["get", "node", addresses.nodeName, query])) === "True";
  });
}
