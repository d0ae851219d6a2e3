/** Addresses and ports of the embedded cluster. One such cluster a machine, so they are fixed. */
export const addresses = {
  node: "10.244.0.1",
  nodeName: "slipway",
  bridge: "slipway0",
  /** 1,021 addresses for pods: the kubelet runs up to `maxPods`, and rollouts overlap. */
  podCidr: "10.244.0.0/22",
  serviceCidr: "10.96.0.0/16",
  apiService: "10.96.0.1",
  dns: "10.96.0.10",
  clusterDomain: "cluster.local",
} as const;

export const ports = {
  apiserver: 6443,
  etcdClient: 2379,
  etcdPeer: 2380,
  kubelet: 10250,
  registry: 5000,
  /** Of builds: its tokens are signed by the platform. */
  buildsRegistry: 5001,
  git: 5002,
} as const;

/**
 * Ports of Services of type NodePort, on the node's address alone. Below the ports that Linux gives to outgoing connections
 * (from 32768), and nothing else of the cluster listens there.
 */
export const nodePorts = { first: 30_000, last: 32_767 } as const;

/** The range as Kubernetes and nftables write it. */
export const nodePortRange = `${nodePorts.first}-${nodePorts.last}`;

export const maxPods = 400;

/** Host part of the image references that the nodes pull. */
export const registryHost = `${addresses.node}:${ports.registry}`;

/** Host part of the references of images that builds push, and of the images that they start from. */
export const buildsRegistryHost = `${addresses.node}:${ports.buildsRegistry}`;

/** Host part of the Git server's addresses. */
export const gitHost = `${addresses.node}:${ports.git}`;
