import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { aptPackages, archiveImage, type BuiltImage } from "../images/index.ts";
import { run } from "../lib/exec.ts";
import { adminKubeconfig, confDir, logDir, stateDir } from "../lib/paths.ts";
import { say, step } from "../lib/steps.ts";
import { addonImage } from "./addon-images.ts";
import { applyAddons, waitForAddons } from "./addons.ts";
import { binaryPath, ensureBinaries } from "./binaries.ts";
import type { Cluster } from "./cluster.ts";
import type { EmbeddedOptions } from "./embedded.ts";
import {
  chooseNodeImage,
  ingressNode,
  kindConfig,
  type NodeImageChoice,
  podSubnet,
  publishedImage,
} from "./kind/config.ts";
import {
  type Engine,
  type EngineName,
  engineOf,
  enginesHere,
  nodeNetworks,
  podmanPackages,
  prepareEngine,
  removeNetwork,
} from "./kind/engine.ts";
import { buildKindNode } from "./kind/node-image.ts";
import { configureNodes, ensureRegistrySecret, kindRegistryHost } from "./kind/registry.ts";
import { type Kubectl, kubectlFor } from "./kubectl.ts";
import { checkRunningNodes, checkRunningVersion, type KubernetesVersion } from "./node-images.ts";
import { ensurePackages } from "./packages.ts";
import { linkTools } from "./tools.ts";

const name = "slipway";
/** The node with the control plane, and with the ports of this machine. */
const firstNode = `${name}-control-plane`;
const CONTROL_PLANE = "node-role.kubernetes.io/control-plane";
const log = join(logDir, "up.log");
/** Host ports of Traefik inside the node; kind's port mappings lead to them. */
const nodePorts = { ingress: 8000, api: 8001 };

export interface KindOptions extends EmbeddedOptions {
  /** What runs the nodes. */
  engine: EngineName;
  /** How many nodes; what runs unless given, one at first. */
  nodes?: number | undefined;
  /** Which image the nodes run from; by the engine unless given. */
  nodeImage?: NodeImageChoice | undefined;
  /** Version of Kubernetes of the node; that of the embedded cluster unless given. */
  kubernetes?: KubernetesVersion | undefined;
}

/**
 * Starts a cluster by kind, which runs its nodes on Docker or podman. Its nodes have DNS, storage and network policies;
 * Traefik and metrics-server are added as on the embedded cluster. Images are loaded into the nodes.
 */
export async function ensureKind(options: KindOptions): Promise<Cluster> {
  for (const dir of [stateDir, logDir, confDir]) {
    await mkdir(dir, { recursive: true });
  }
  const engine = engineOf(options.engine);
  await step(`${engine.name} as kind's engine`, () => ensureEngine(engine), log);
  const tools = () => ensureBinaries(["kind", "kubernetes", "helm"]);
  const [kind, kubernetes, helm] = await step("cluster tools", tools);
  if (!kind || !kubernetes || !helm) {
    throw new Error("a tool is missing");
  }
  await linkTools(kubernetes, helm);
  const kubectl = kubectlFor([kubernetes, "kubectl"], adminKubeconfig);
  const nodeNames = await step("kind cluster", () => ensureNodes(kind, engine, kubectl, options), log);
  const { env } = engine;
  const importImage = async (image: BuiltImage) => {
    const archive = join(stateDir, `load-${process.pid}-${image.tag}.tar`);
    try {
      await archiveImage(image, archive);
      await run(kind, ["load", "image-archive", "--name", name, archive], { env, log });
    } finally {
      await rm(archive, { force: true });
    }
  };
  const services = async () => {
    const values: Record<string, string> = {
      HOST_ADDRESS: "0.0.0.0",
      INGRESS_NODES: JSON.stringify(ingressNode),
      INGRESS_PORT: String(nodePorts.ingress),
      API_PORT: String(nodePorts.api),
      // kind's kubelet signs its certificate itself.
      KUBELET_TLS: "--kubelet-insecure-tls",
    };
    const addons = ["traefik", "metrics-server", "registry"] as const;
    for (const addon of addons) {
      const image = await addonImage(addon);
      await importImage(image);
      values[`IMAGE_${addon.toUpperCase().replaceAll("-", "_")}`] = image.reference;
    }
    const push = await ensureRegistrySecret(kubectl, firstNode, log);
    await configureNodes(engine, nodeNames, firstNode, push.caFile);
    await applyAddons(kubectl, [...addons], values, log);
    // As for the control plane: see hack/cluster/kind/control-plane.
    await kubectl(["-n", "kube-system", "set", "resources", "deployment/coredns", "--requests=cpu=10m"]);
    await waitForAddons(kubectl, ["traefik", "registry"], log);
    return push;
  };
  const push = await step("cluster services", services, log);
  const nodes = await nodeNetworks(engine);
  return {
    kind: "kind",
    kubeconfig: adminKubeconfig,
    kubectl,
    helm,
    registry: { push, pull: kindRegistryHost },
    importImage,
    apiUrl: `http://127.0.0.1:${options.apiPort}`,
    ingressUrl: `http://127.0.0.1:${options.ingressPort}`,
    networks: {
      pods: podSubnet,
      apiserver: ["10.96.0.1/32", ...nodes],
      nodes,
      denied: [podSubnet, "10.96.0.0/16", "169.254.0.0/16", ...nodes],
    },
    podsReachable: false,
    databaseHost: "127.0.0.1",
    collector: { podLogs: "/var/log/pods", stateFolder: "/var/lib/slipway/collector" },
    builds: undefined,
    waitForSlowParts: () => waitForAddons(kubectl, ["metrics-server"], log),
  };
}

async function ensureEngine(engine: Engine): Promise<void> {
  if (engine.name === "podman") {
    const added = await ensurePackages([...podmanPackages, ...aptPackages], log);
    say(added.length ? `installed ${added.join(" ")}` : "all there");
  }
  await prepareEngine(engine, log);
}

/** Makes the nodes, unless they run; what they are is checked against what is requested. @returns their names */
async function ensureNodes(
  kind: string,
  engine: Engine,
  kubectl: Kubectl,
  options: KindOptions,
): Promise<string[]> {
  const { env } = engine;
  const clusters = (await run(kind, ["get", "clusters"], { env, log })).split("\n");
  if (clusters.includes(name)) {
    say("runs");
  } else {
    const choice = chooseNodeImage({
      engine: engine.name,
      unified: existsSync("/sys/fs/cgroup/cgroup.controllers"),
      nodeImage: options.nodeImage,
      kubernetes: options.kubernetes,
    });
    const isOwnImage = choice === "own";
    const image = isOwnImage ? (await buildKindNode()).reference : publishedImage(options.kubernetes);
    const config = await kindConfig({ ...options, nodes: options.nodes ?? 1, image, isOwnImage });
    await run(kind, ["create", "cluster", "--config", "-", "--wait", "180s"], { input: config, env, log });
  }
  await run(kind, ["export", "kubeconfig", "--name", name, "--kubeconfig", adminKubeconfig], { env, log });
  const nodes = (await kubectl(["get", "nodes", "-o", "name"])).trim().split("\n");
  checkRunningNodes(nodes.length, options.nodes);
  if (nodes.length > 1) {
    // The ingress runs on the control plane, and two workers are few: it takes pods as they do. kind sees to a node that is alone.
    const taint = await kubectl(["get", "node", firstNode, "-o", "jsonpath={.spec.taints[*].key}"]);
    if (taint.includes(CONTROL_PLANE)) {
      await kubectl(["taint", "node", firstNode, `${CONTROL_PLANE}-`], { log });
    }
  }
  checkRunningVersion(await kubectl(["get", "--raw", "/version"]), options.kubernetes);
  return nodes.map((node) => node.replace("node/", ""));
}

/** Deletes the kind cluster of these scripts, where this user ever built kind for it. @returns whether there was one */
export async function deleteKind(): Promise<boolean> {
  const kind = binaryPath("kind");
  if (!existsSync(kind)) {
    return false;
  }
  let found = false;
  for (const engine of await enginesHere()) {
    const { env } = engine;
    const clusters = await run(kind, ["get", "clusters"], { env }).catch(() => "");
    if (clusters.split("\n").includes(name)) {
      found = true;
      await step("kind cluster", async () => {
        await run(kind, ["delete", "cluster", "--name", name], { env });
      });
    }
    await removeNetwork(engine);
  }
  return found;
}
