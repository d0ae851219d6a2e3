/** Addresses and ports of the embedded cluster. One such cluster a machine, so they are fixed. */
export const addresses = {
  node: "10.244.0.1",
  nodeName: "slipway",
  bridge: "slipway0",
  /** 1,021 addresses for pods: the kubelet takes up to `maxPods`, and rollouts overlap. */
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
} as const;

export const maxPods = 400;

/** Host part of the image references that the nodes pull. */
export const registryHost = `${addresses.node}:${ports.registry}`;
