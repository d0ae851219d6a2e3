import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "../../lib/paths.ts";
import { UserError } from "../../lib/steps.ts";
import { fillIn } from "../addons.ts";
import { defaultKubernetes, type KubernetesVersion, nodeImage } from "../node-images.ts";
import type { EngineName } from "./engine.ts";
import { registryPort } from "./registry.ts";

/**
 * Ports of databases: a mapping each, made with the node, so there are few. Away from those that examples name, and below
 * those that Linux gives to outgoing connections: one that is taken on this machine keeps the node from starting.
 */
const databasePorts = { first: 32_600, count: 100 };

/**
 * Addresses of pods. Not those of the embedded cluster, which may run beside: packets between nodes pass the machine's own rules where
 * it filters bridges, and those of the embedded cluster close its addresses to everything but its bridge.
 */
export const podSubnet = "10.248.0.0/16";

/** Label of the node whose ports lead to the ingress. */
export const ingressNode = { "slipway.dev/ingress": "true" };

export interface KindConfig {
  apiPort: number;
  ingressPort: number;
  /** A control plane, which takes pods too, and workers. */
  nodes: number;
  /** Reference of the nodes' image. */
  image: string;
  /** Whether that is the image of these sources. */
  isOwnImage: boolean;
}

/** kind's configuration for these loopback ports and this image of the nodes. */
export async function kindConfig(options: KindConfig): Promise<string> {
  const text = await readFile(join(root, "hack/cluster/kind/config.yaml"), "utf8");
  const { first, count } = databasePorts;
  const mappings = Array.from({ length: count }, (_, index) => {
    const port = first + index;
    return `- { containerPort: ${port}, hostPort: ${port}, listenAddress: 127.0.0.1, protocol: TCP }`;
  });
  const workers = Array.from(
    { length: options.nodes - 1 },
    () => `  - role: worker\n    image: ${options.image}\n`,
  );
  const filled = fillIn(text, {
    API_PORT: String(options.apiPort),
    INGRESS_PORT: String(options.ingressPort),
    POD_SUBNET: podSubnet,
    CONTROL_PLANE_PATCHES: JSON.stringify(join(root, "hack/cluster/kind/control-plane")),
    REGISTRY_PORT: String(registryPort),
    NODE_IMAGE: options.image,
    NODE_PORTS: mappings.join("\n      "),
    NODE_PORT_RANGE: `${first}-${first + count - 1}`,
    // The image of these sources has no programs but nftables' for kube-proxy, and containerd without systemd's groups.
    PROXY_MODE: options.isOwnImage ? "nftables" : "iptables",
    CONTROL_GROUPS: options.isOwnImage ? "cgroupDriver: cgroupfs\n        failCgroupV1: false" : "",
  });
  return filled + workers.join("");
}

export type NodeImageChoice = "own" | "published";

export interface NodeImageRequest {
  engine: EngineName;
  /** Whether the machine's control groups are version 2 alone. */
  unified: boolean;
  nodeImage: NodeImageChoice | undefined;
  kubernetes: KubernetesVersion | undefined;
}

/**
 * Whether nodes run from the image that these sources make, which needs no registry, or from kind's published one. Pure.
 * @throws UserError when the one that is requested cannot be had
 */
export function chooseNodeImage({
  engine,
  unified,
  nodeImage,
  kubernetes,
}: NodeImageRequest): NodeImageChoice {
  const isOther = kubernetes !== undefined && kubernetes !== defaultKubernetes;
  const why =
    (engine === "docker" && "runs on podman") ||
    (unified && "is for control groups of version 1, and this machine has version 2") ||
    (isOther && `has Kubernetes ${defaultKubernetes}, not ${kubernetes}`);
  if (nodeImage === "own" && why) {
    throw new UserError(`--node-image own: the image of these sources ${why}`);
  }
  return nodeImage ?? (why ? "published" : "own");
}

/** Reference of kind's published image with this version. */
export const publishedImage = (kubernetes: KubernetesVersion | undefined): string =>
  nodeImage(kubernetes ?? defaultKubernetes);
