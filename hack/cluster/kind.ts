import { existsSync } from "node:fs";
import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { archiveImage, type BuiltImage } from "../images/index.ts";
import { run } from "../lib/exec.ts";
import { adminKubeconfig, confDir, logDir, root, stateDir } from "../lib/paths.ts";
import { say, step } from "../lib/steps.ts";
import { addonImage } from "./addon-images.ts";
import { applyAddons, fillIn, waitForAddons } from "./addons.ts";
import { binaryPath, ensureBinaries } from "./binaries.ts";
import type { Cluster } from "./cluster.ts";
import type { EmbeddedOptions } from "./embedded.ts";
import { kubectlFor } from "./kubectl.ts";
import { checkRunningVersion, defaultKubernetes, type KubernetesVersion, nodeImage } from "./node-images.ts";
import { linkTools } from "./tools.ts";

const name = "slipway";
const log = join(logDir, "up.log");
/** Host ports of Traefik inside the node; kind's port mappings lead to them. */
const nodePorts = { ingress: 8000, api: 8001 };

/**
 * Ports of databases: a mapping each, made with the node, so there are few. Away from those that examples name, and below
 * those that Linux gives to outgoing connections: one that is taken on this machine keeps the node from starting.
 */
const databasePorts = { first: 32_600, count: 100 };

export interface KindOptions extends EmbeddedOptions {
  /** Version of Kubernetes of the node; that of the embedded cluster unless given. */
  kubernetes?: KubernetesVersion | undefined;
}

/** kind's configuration for these loopback ports and this version of Kubernetes. */
export async function kindConfig(options: KindOptions): Promise<string> {
  const text = await readFile(join(root, "hack/cluster/kind/config.yaml"), "utf8");
  const { first, count } = databasePorts;
  const mappings = Array.from({ length: count }, (_, index) => {
    const port = first + index;
    return `- { containerPort: ${port}, hostPort: ${port}, listenAddress: 127.0.0.1, protocol: TCP }`;
  });
  return fillIn(text, {
    API_PORT: String(options.apiPort),
    INGRESS_PORT: String(options.ingressPort),
    NODE_IMAGE: nodeImage(options.kubernetes ?? defaultKubernetes),
    NODE_PORTS: mappings.join("\n      "),
    NODE_PORT_RANGE: `${first}-${first + count - 1}`,
  });
}

/**
 * Starts a cluster of one node by kind, which runs it on Docker. kind has DNS, storage and network policies;
 * Traefik and metrics-server are added as on the embedded cluster. Images are loaded into the node.
 */
export async function ensureKind(options: KindOptions): Promise<Cluster> {
  for (const dir of [stateDir, logDir, confDir]) {
    await mkdir(dir, { recursive: true });
  }
  const tools = () => ensureBinaries(["kind", "kubernetes", "helm"]);
  const [kind, kubernetes, helm] = await step("cluster tools", tools);
  if (!kind || !kubernetes || !helm) {
    throw new Error("a tool is missing");
  }
  await linkTools(kubernetes, helm);
  const kubectl = kubectlFor([kubernetes, "kubectl"], adminKubeconfig);
  const create = async () => {
    const clusters = (await run(kind, ["get", "clusters"], { log })).split("\n");
    if (clusters.includes(name)) {
      say("runs");
    } else {
      await run(kind, ["create", "cluster", "--config", "-", "--wait", "180s"], {
        input: await kindConfig(options),
        log,
      });
    }
    await run(kind, ["export", "kubeconfig", "--name", name, "--kubeconfig", adminKubeconfig], { log });
    checkRunningVersion(await kubectl(["get", "--raw", "/version"]), options.kubernetes);
  };
  await step("kind cluster", create, log);
  const importImage = async (image: BuiltImage) => {
    const archive = join(stateDir, `load-${process.pid}.tar`);
    try {
      await archiveImage(image, archive);
      await run(kind, ["load", "image-archive", "--name", name, archive], { log });
    } finally {
      await rm(archive, { force: true });
    }
  };
  const services = async () => {
    const values: Record<string, string> = {
      HOST_ADDRESS: "0.0.0.0",
      INGRESS_PORT: String(nodePorts.ingress),
      API_PORT: String(nodePorts.api),
      // kind's kubelet signs its certificate itself.
      KUBELET_TLS: "--kubelet-insecure-tls",
    };
    for (const addon of ["traefik", "metrics-server"] as const) {
      const image = await addonImage(addon);
      await importImage(image);
      values[`IMAGE_${addon.toUpperCase().replaceAll("-", "_")}`] = image.reference;
    }
    await applyAddons(kubectl, ["traefik", "metrics-server"], values, log);
    await waitForAddons(kubectl, ["traefik"], log);
  };
  await step("cluster services", services, log);
  return {
    kind: "kind",
    kubeconfig: adminKubeconfig,
    kubectl,
    helm,
    registry: undefined,
    importImage,
    apiUrl: `http://127.0.0.1:${options.apiPort}`,
    ingressUrl: `http://127.0.0.1:${options.ingressPort}`,
    networks: {
      pods: "10.244.0.0/16",
      // The node's address is Docker's choice, out of this range.
      apiserver: ["10.96.0.1/32", "172.16.0.0/12"],
      nodes: ["172.16.0.0/12"],
      denied: ["10.244.0.0/16", "10.96.0.0/16", "169.254.0.0/16", "172.16.0.0/12"],
    },
    podsReachable: false,
    databaseHost: "127.0.0.1",
    collector: { podLogs: "/var/log/pods", stateFolder: "/var/lib/slipway/collector" },
    builds: undefined,
    waitForSlowParts: () => waitForAddons(kubectl, ["metrics-server"], log),
  };
}

/** Deletes the kind cluster of these scripts, where this user ever built kind for it. */
export async function deleteKind(): Promise<void> {
  const kind = binaryPath("kind");
  if (!existsSync(kind)) {
    return;
  }
  const clusters = await run(kind, ["get", "clusters"]).catch(() => "");
  if (!clusters.split("\n").includes(name)) {
    return;
  }
  await step("kind cluster", async () => {
    await run(kind, ["delete", "cluster", "--name", name]);
  });
}
