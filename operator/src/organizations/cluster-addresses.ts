/** The cluster's own addresses, read from its objects, and those outside of it that tenants reach. Pure but for the stores. */

import { isIP } from "node:net";
import { type KubernetesObject, type Manager, resources, type Store } from "@slipway/controller-runtime";
import { subtractCidrs } from "../net/cidr.ts";
import type { PolicyRule } from "../rbac.ts";

/** The Service of the apiserver in every cluster, and the namespace that it is in. */
const APISERVER = { namespace: "default", name: "kubernetes" } as const;

/** In the namespace `default`: where the apiserver is. */
export const defaultNamespaceRules: PolicyRule[] = [
  { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"] },
];

export interface EndpointSlice extends KubernetesObject {
  endpoints?: readonly { addresses?: readonly string[] }[];
  ports?: readonly { port?: number }[];
}

export interface Service extends KubernetesObject {
  spec?: { clusterIPs?: readonly string[]; ports?: readonly { port: number }[] };
}

export interface AddressedNode extends KubernetesObject {
  spec?: { podCIDRs?: readonly string[] };
  status?: { addresses?: readonly { type: string; address: string }[] };
}

/** Where pods find the apiserver: TCP ports at some ranges. */
export interface ApiserverPeer {
  cidrs: readonly string[];
  ports: readonly number[];
}

export interface ClusterStores {
  /** The apiserver's EndpointSlices. */
  slices: Store<EndpointSlice>;
  /** The apiserver's Service. */
  apiserver: Store<Service>;
}

/** Creates the stores; their reflectors start with the manager. */
export function createClusterStores(manager: Manager): ClusterStores {
  const { namespace, name } = APISERVER;
  return {
    slices: manager.store<EndpointSlice>(resources.endpointSlices, {
      namespace,
      labelSelector: `kubernetes.io/service-name=${name}`,
    }),
    apiserver: manager.store<Service>(resources.services, {
      namespace,
      fieldSelector: `metadata.name=${name}`,
    }),
  };
}

/**
 * The apiserver's endpoints, and its Service's addresses: a policy may be enforced before or after these are translated.
 * Ordered, so that the objects with them stay unchanged.
 */
export function apiserverPeers({ slices, apiserver }: ClusterStores): ApiserverPeer[] {
  const services = apiserver.list().map(({ spec }) => ({
    addresses: spec?.clusterIPs ?? [],
    ports: (spec?.ports ?? []).map(({ port }) => port),
  }));
  const endpoints = slices.list().map((slice) => ({
    addresses: (slice.endpoints ?? []).flatMap(({ addresses = [] }) => addresses),
    ports: (slice.ports ?? []).flatMap(({ port }) => port ?? []),
  }));
  return [...services, ...endpoints]
    .map(({ addresses, ports }) => ({
      cidrs: addresses
        .filter((address) => isIP(address) > 0)
        .map(single)
        .toSorted(),
      ports: ports.toSorted((a, b) => a - b),
    }))
    .filter(({ cidrs, ports }) => cidrs.length > 0 && ports.length > 0)
    .toSorted((a, b) => (a.cidrs.join() < b.cidrs.join() ? -1 : 1));
}

/** Calls the listener when the apiserver's addresses have changed. Returns how to unsubscribe. */
export function onApiserverMoved(stores: ClusterStores, listener: () => void): () => void {
  let known = JSON.stringify(apiserverPeers(stores));
  const compare = () => {
    const now = JSON.stringify(apiserverPeers(stores));
    if (now === known) {
      return;
    }
    known = now;
    listener();
  };
  const stops = [stores.slices.subscribe(compare), stores.apiserver.subscribe(compare)];
  return () => stops.forEach((stop) => void stop());
}

/** Addresses of the cluster that tenants must not reach. */
export interface ClusterAddresses {
  node: readonly string[];
  pod: readonly string[];
  service: readonly string[];
  apiserver: readonly string[];
}

export const ADDRESS_KINDS = ["node", "pod", "service", "apiserver"] as const;

/** @param services any of the cluster's: their ranges cannot be read on every version */
export function clusterAddresses(
  nodes: readonly AddressedNode[],
  services: readonly Service[],
  stores: ClusterStores,
): ClusterAddresses {
  const ips = (addresses: readonly string[]) => addresses.filter((one) => isIP(one) > 0).map(single);
  return {
    node: ips(nodes.flatMap(({ status }) => (status?.addresses ?? []).map(({ address }) => address))),
    pod: nodes.flatMap(({ spec }) => spec?.podCIDRs ?? []),
    service: ips([...services, ...stores.apiserver.list()].flatMap(({ spec }) => spec?.clusterIPs ?? [])),
    apiserver: apiserverPeers(stores).flatMap(({ cidrs }) => cidrs),
  };
}

/** Ranges of the cluster that its tenants' policies leave open, by kind. */
export function openAddresses(
  addresses: ClusterAddresses,
  denied: readonly string[],
): Record<(typeof ADDRESS_KINDS)[number], string[]> {
  const all = deniedCidrs(denied);
  const open = (kind: (typeof ADDRESS_KINDS)[number]) => subtractCidrs(addresses[kind], all);
  return { node: open("node"), pod: open("pod"), service: open("service"), apiserver: open("apiserver") };
}

const single = (address: string): string => `${address}/${address.includes(":") ? 128 : 32}`;

// The addresses outside the cluster that a tenant's pods may reach, as `ipBlock` peers. Pure.

/** Never reachable from a tenant, in any configuration. */
const ALWAYS_DENIED = [
  // Link-local, with the metadata service of most clouds; shared addresses (RFC 6598), with Alibaba's at 100.100.100.200.
  "169.254.0.0/16",
  "100.64.0.0/10",
  // Azure's agent of its hosts; the protocols' own block, with Oracle's metadata at 192.0.0.192.
  "168.63.129.16/32",
  "192.0.0.0/24",
  // Private, with EC2's metadata at fd00:ec2::254, and link-local.
  "fc00::/7",
  "fe80::/10",
  // Behind a translator these are IPv4 addresses, those that are denied too (RFC 6052, RFC 8215).
  "64:ff9b::/96",
  "64:ff9b:1::/48",
];

/** One `ipBlock` of a NetworkPolicy peer. */
export interface IpBlock {
  cidr: string;
  except?: string[];
}

/** The configured ranges and those that are always denied: merged and ordered. */
export function deniedCidrs(configured: readonly string[]): string[] {
  return subtractCidrs([...configured, ...ALWAYS_DENIED], []);
}

/**
 * Everything but the denied ranges, one block per address family. A family whose every address is denied has no block:
 * Kubernetes wants each exception strictly inside its block. Merged and ordered, so that the object stays unchanged.
 */
export function outsideWorld(denied: readonly string[]): IpBlock[] {
  const except = deniedCidrs(denied);
  return ["0.0.0.0/0", "::/0"]
    .filter((everything) => !except.includes(everything))
    .map((cidr) => ({ cidr, except: except.filter((range) => range.includes(":") === cidr.includes(":")) }));
}
