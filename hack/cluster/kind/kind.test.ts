import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { root } from "../../lib/paths.ts";
import { addresses } from "../addresses.ts";
import { kubernetesVersion } from "../programs.ts";
import { chooseNodeImage, kindConfig, type NodeImageRequest } from "./config.ts";
import { engineEnvironment, storageConfiguration, subnetsOf } from "./engine.ts";
import { imageOf, nodeCni } from "./node-image.ts";

const request: NodeImageRequest = {
  engine: "podman",
  unified: false,
  nodeImage: undefined,
  kubernetes: undefined,
};

test("the nodes' image is that of these sources where it runs, else kind's", () => {
  expect(chooseNodeImage(request)).toBe("own");
  expect(chooseNodeImage({ ...request, nodeImage: "published" })).toBe("published");
  for (const other of [{ engine: "docker" }, { unified: true }, { kubernetes: "1.33" }] as const) {
    expect(chooseNodeImage({ ...request, ...other })).toBe("published");
    expect(() => chooseNodeImage({ ...request, ...other, nodeImage: "own" })).toThrow("--node-image own");
  }
});

test("podman has a network of its own, and our limits only beside control groups of version 1", () => {
  const old = engineEnvironment("podman", { unified: false });
  const { CONTAINERS_CONF: file, ...rest } = old;
  expect(file).toBe(join(root, "hack/cluster/kind/containers.conf"));
  expect(engineEnvironment("podman", { unified: true })).toEqual(rest);
  expect(rest).toMatchObject({ KIND_EXPERIMENTAL_PROVIDER: "podman" });
  expect(engineEnvironment("docker", { unified: false })).toEqual({ KIND_EXPERIMENTAL_PROVIDER: "docker" });
});

test("podman finds images of the cache", () => {
  expect(storageConfiguration("/cache/storage")).toContain('additionalimagestores = ["/cache/storage"]');
});

test("nodes' addresses are those of podman's network, of version 4", () => {
  const subnets = [{ subnet: "fc00::/64", gateway: "fc00::1" }, { subnet: "10.89.0.0/24" }];
  expect(subnetsOf(JSON.stringify([{ name: "n", subnets }]))).toEqual(["10.89.0.0/24"]);
});

test("three nodes are a control plane, which has the ingress, and two workers of one image", async () => {
  const options = { apiPort: 8081, ingressPort: 8080, nodes: 3, image: "example/node:1", isOwnImage: true };
  const config = parse(await kindConfig(options)) as {
    networking: { kubeProxyMode: string; podSubnet: string };
    nodes: { role: string; image: string; labels?: object; kubeadmConfigPatches?: string[] }[];
  };
  expect(config.nodes.map(({ role }) => role)).toEqual(["control-plane", "worker", "worker"]);
  expect(new Set(config.nodes.map(({ image }) => image))).toEqual(new Set(["example/node:1"]));
  expect(config.nodes[0]?.labels).toEqual({ "slipway.dev/ingress": "true" });
  const patches = (config.nodes[0]?.kubeadmConfigPatches ?? []).map((patch) => parse(patch));
  expect(patches.at(-1)).toMatchObject({ cgroupDriver: "cgroupfs", failCgroupV1: false });
  expect(config.networking.kubeProxyMode).toBe("nftables");
  // The embedded cluster beside closes its own addresses, in packets between nodes too.
  const first = (cidr: string) => cidr.split(".").slice(0, 2);
  expect(first(config.networking.podSubnet)).not.toEqual(first(addresses.podCidr));
});

test.each([
  ["registry.k8s.io/kube-apiserver:v1.34.4", "kubernetes"],
  ["registry.k8s.io/etcd:3.6.5-0", "kubernetes"],
  ["registry.k8s.io/coredns/coredns:v1.12.1", "coredns"],
  ["registry.example:5000/pause:3.10.1", "pause"],
])("kubeadm's %s is our %s", (reference, image) => {
  expect(imageOf(reference)).toBe(image);
});

test("an image that nothing here is, is refused", () => {
  expect(() => imageOf("registry.k8s.io/konnectivity:1")).toThrow("konnectivity");
});

test("pods' network leaves the node's part of it to the node, and addresses to pods", () => {
  const { plugins } = JSON.parse(nodeCni()) as {
    plugins: { ipMasq?: boolean; ipam?: { ranges: unknown } }[];
  };
  expect(plugins[0]).toMatchObject({ ipMasq: false, ipam: { ranges: [[{ subnet: "POD_CIDR" }]] } });
});

test("kubeadm is of the same Kubernetes as the rest", async () => {
  const mod = await readFile(join(root, "hack/cluster/kubeadm/go.mod"), "utf8");
  expect(mod).toContain(`k8s.io/kubernetes ${kubernetesVersion}`);
});
