import { Store } from "@slipway/controller-runtime";
import { expect, test } from "vitest";
import {
  apiserverPeers,
  type ClusterStores,
  clusterAddresses,
  type EndpointSlice,
  openAddresses,
  type Service,
} from "./cluster-addresses.ts";

const ref = { namespace: "default", name: "kubernetes", uid: "1", resourceVersion: "1" };

function stores(slices: EndpointSlice[], services: Service[]): ClusterStores {
  const stores = { slices: new Store<EndpointSlice>(), apiserver: new Store<Service>() };
  stores.slices.replace(
    slices.map((slice, at) => ({ ...slice, metadata: { ...ref, name: `kubernetes-${at}` } })),
    "1",
  );
  stores.apiserver.replace(
    services.map((service) => ({ ...service, metadata: ref })),
    "1",
  );
  return stores;
}

const service: Service = { spec: { clusterIPs: ["10.96.0.1"], ports: [{ port: 443 }] } };
const slice: EndpointSlice = {
  endpoints: [{ addresses: ["203.0.113.8"] }, { addresses: ["203.0.113.7"] }],
  ports: [{ port: 6443 }],
};
const node = {
  spec: { podCIDRs: ["10.244.0.0/24", "fd00:1::/64"] },
  status: {
    addresses: [
      { type: "InternalIP", address: "192.0.2.1" },
      { type: "Hostname", address: "node-1" },
    ],
  },
};

test("the apiserver is at its Service and at its endpoints, each with its own port", () => {
  expect(apiserverPeers(stores([slice], [service]))).toEqual([
    { cidrs: ["10.96.0.1/32"], ports: [443] },
    { cidrs: ["203.0.113.7/32", "203.0.113.8/32"], ports: [6443] },
  ]);
});

test("nothing is opened for what has no address or no port yet", () => {
  expect(apiserverPeers(stores([{ endpoints: [], ports: [{ port: 6443 }] }], []))).toEqual([]);
  expect(apiserverPeers(stores([{ ...slice, ports: [] }], []))).toEqual([]);
});

test("what the settings leave open of the cluster is found, by kind", () => {
  const addresses = clusterAddresses([node], [], stores([slice], [service]));
  expect(openAddresses(addresses, ["10.0.0.0/8"])).toEqual({
    node: ["192.0.2.1/32"],
    pod: [],
    service: [],
    apiserver: ["203.0.113.7/32", "203.0.113.8/32"],
  });
});

test("a cluster that is denied as a whole leaves nothing open", () => {
  const addresses = clusterAddresses([node], [service], stores([slice], [service]));
  const denied = ["10.0.0.0/8", "192.0.2.0/24", "203.0.113.0/24"];
  expect(Object.values(openAddresses(addresses, denied)).flat()).toEqual([]);
  const half = openAddresses(addresses, ["10.244.0.0/25", "192.0.2.0/24", "203.0.113.0/24"]);
  expect(half).toMatchObject({ pod: ["10.244.0.128/25"], service: ["10.96.0.1/32"] });
});
