/** The cluster's nodes: where their kubelets listen, and their conditions. */

import {
  type KubeletAddress,
  type KubernetesObject,
  type Manager,
  resources,
  type Store,
} from "@slipway/controller-runtime";

/** The part of a node that is read. */
export interface Node extends KubernetesObject {
  metadata: KubernetesObject["metadata"] & { name: string };
  spec?: { podCIDRs?: readonly string[] };
  status?: {
    addresses?: readonly { type: string; address: string }[];
    daemonEndpoints?: { kubeletEndpoint?: { Port?: number } };
    conditions?: readonly { type: string; status: string; lastTransitionTime?: string }[];
  };
}

const KUBELET_PORT = 10_250;

/** Creates the store of nodes; its reflector starts with the manager. */
export function createNodeStore(manager: Manager): Store<Node> {
  return manager.store<Node>(resources.nodes, { transform: slimNode });
}

/** Where a node's kubelet listens; undefined while the node has reported no address. */
export function kubeletAddress(node: Node | undefined): KubeletAddress | undefined {
  const host = node?.status?.addresses?.find(({ type }) => type === "InternalIP")?.address;
  if (host === undefined) {
    return undefined;
  }
  return { host, port: node?.status?.daemonEndpoints?.kubeletEndpoint?.Port || KUBELET_PORT };
}

/** Drops what is not read on arrival: images, volumes and heartbeats. */
export function slimNode({ apiVersion, kind, metadata, spec, status }: Node): Node {
  return {
    apiVersion,
    kind,
    metadata: { name: metadata.name, uid: metadata.uid, resourceVersion: metadata.resourceVersion },
    spec: { podCIDRs: spec?.podCIDRs },
    status: {
      addresses: status?.addresses?.filter(({ type }) => type.endsWith("IP")),
      daemonEndpoints: status?.daemonEndpoints,
      conditions: status?.conditions
        ?.filter(({ type }) => type === "Ready")
        .map(({ type, status: value, lastTransitionTime }) => ({ type, status: value, lastTransitionTime })),
    },
  };
}
