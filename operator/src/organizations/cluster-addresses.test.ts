import { Store } from "@slipway/controller-runtime";
import { describe, expect, test } from "vitest";
import { subtractCidrs } from "../net/cidr.ts";
import {
  apiserverPeers,
  type ClusterStores,
  clusterAddresses,
  type EndpointSlice,
  openAddresses,
  outsideWorld,
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

const ALWAYS_4 = ["100.64.0.0/10", "168.63.129.16/32", "169.254.0.0/16", "192.0.0.0/24"];
const ALWAYS_6 = ["64:ff9b::/96", "64:ff9b:1::/48", "fc00::/7", "fe80::/10"];

test.each([
  ["EC2, Google Cloud, Azure, DigitalOcean", "169.254.169.254"],
  ["EC2 over IPv6", "fd00:ec2::254"],
  ["Alibaba Cloud", "100.100.100.200"],
  ["Azure's host agent", "168.63.129.16"],
  ["Oracle Cloud", "192.0.0.192"],
  ["nodes behind a carrier's translator", "100.127.255.254"],
  ["EC2's metadata through NAT64", "64:ff9b::a9fe:a9fe"],
])("%s is never in the outside world", (_, address) => {
  const single = `${address}/${address.includes(":") ? 128 : 32}`;
  const except = outsideWorld([]).flatMap((block) => block.except ?? []);
  expect(subtractCidrs([single], except)).toEqual([]);
});

describe("outsideWorld", () => {
  test("closes metadata and private IPv6 ranges even when nothing is configured", () => {
    expect(outsideWorld([])).toEqual([
      { cidr: "0.0.0.0/0", except: ALWAYS_4 },
      { cidr: "::/0", except: ALWAYS_6 },
    ]);
  });

  test("puts each configured range under its own address family", () => {
    expect(outsideWorld(["10.244.0.0/24", "2001:db8::/32"])).toEqual([
      { cidr: "0.0.0.0/0", except: ["10.244.0.0/24", ...ALWAYS_4] },
      { cidr: "::/0", except: ["64:ff9b::/96", "64:ff9b:1::/48", "2001:db8::/32", "fc00::/7", "fe80::/10"] },
    ]);
  });

  test("drops ranges that lie inside another one", () => {
    expect(outsideWorld(["10.0.0.0/8", "10.96.0.0/16", "fd00:1::/64"])).toEqual([
      { cidr: "0.0.0.0/0", except: ["10.0.0.0/8", ...ALWAYS_4] },
      { cidr: "::/0", except: ALWAYS_6 },
    ]);
  });

  test("returns no block for a family that is denied as a whole", () => {
    expect(outsideWorld(["::/0"]).map(({ cidr }) => cidr)).toEqual(["0.0.0.0/0"]);
  });

  test("does not depend on the order or repetition of its input", () => {
    expect(outsideWorld(["10.1.0.0/16", "10.0.0.0/16", "10.1.0.0/16"])).toEqual(
      outsideWorld(["10.0.0.0/16", "10.1.0.0/16"]),
    );
  });
});
