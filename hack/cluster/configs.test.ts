import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { fillIn } from "./addons.ts";
import { addresses, maxPods, nodePorts, ports } from "./addresses.ts";
import { gitConfig } from "./builds/git-config.ts";
import { buildsRegistryConfig } from "./builds/registry.ts";
import { cniConfig, containerdConfig, registryConfig, registryHosts } from "./containerd.ts";
import { apiserverArgs, auditPolicy, etcdArgs } from "./control-plane.ts";
import { guardRules } from "./guard.ts";
import { kubeletConfig, proxyConfig } from "./node-config.ts";

const pair = (name: string) => ({ cert: `/pki/${name}.crt`, key: `/pki/${name}.key` });

const addons = join(import.meta.dirname, "addons");
const values = {
  CLUSTER_DOMAIN: "cluster.local",
  DNS_ADDRESS: "10.96.0.10",
  HOST_ADDRESS: "127.0.0.1",
  INGRESS_NODES: "{}",
  IMAGE_REGISTRY: "slipway.local/slipway/registry:1",
  API_PORT: "8081",
  INGRESS_PORT: "8080",
  KUBELET_TLS: "--kubelet-insecure-tls",
  IMAGE_COREDNS: "slipway.local/slipway/coredns:1",
  IMAGE_METRICS_SERVER: "slipway.local/slipway/metrics-server:1",
  IMAGE_TRAEFIK: "slipway.local/slipway/traefik:1",
};

test.each(readdirSync(addons))("addons/%s is YAML of named objects once filled in", (file) => {
  const text = fillIn(readFileSync(join(addons, file), "utf8"), values);
  for (const document of parseAllDocuments(text)) {
    expect(document.errors).toEqual([]);
    const object = document.toJS() as { apiVersion?: string; kind?: string; metadata?: { name?: string } };
    expect(object).toMatchObject({ apiVersion: expect.any(String), kind: expect.any(String) });
    expect(object.metadata?.name).toBeTruthy();
  }
});

test("a placeholder without a value is an error that names it", () => {
  expect(() => fillIn(`image: $\{IMAGE_NONE}`, {})).toThrow("no value for IMAGE_NONE");
});

test("the pod network has more addresses than the node runs pods, and the node's is its first", () => {
  const prefix = Number(addresses.podCidr.split("/")[1]);
  expect(2 ** (32 - prefix)).toBeGreaterThan(2 * maxPods);
  const config = JSON.parse(cniConfig("/run/slipway/ipam")) as {
    plugins: { type: string; isGateway?: boolean; ipam?: { ranges: unknown } }[];
  };
  expect(config.plugins.map((plugin) => plugin.type)).toEqual(["bridge", "portmap"]);
  expect(config.plugins[0]).toMatchObject({ bridge: addresses.bridge, isGateway: true });
  expect(config.plugins[0]?.ipam?.ranges).toEqual([[{ subnet: addresses.podCidr, gateway: addresses.node }]]);
});

test("containerd keeps to its own folders and the stack's registry is trusted by its authority", () => {
  const config = containerdConfig({
    root: "/state/containerd",
    state: "/run/slipway/containerd",
    socket: "/run/slipway/containerd.sock",
    cniConfDir: "/conf/cni",
    registryConfigDir: "/conf/registries",
    sandboxImage: "slipway.local/slipway/pause:1",
  });
  expect(config).toContain('root = "/state/containerd"');
  expect(config).toContain('sandbox_image = "slipway.local/slipway/pause:1"');
  expect(config).toContain("restrict_oom_score_adj = true");
  expect(config).not.toContain("/var/lib");
  expect(registryHosts("/pki/ca.crt")).toContain('ca = "/pki/ca.crt"');
  expect(registryHosts("/pki/ca.crt", "10.244.0.1:5001")).toContain('server = "https://10.244.0.1:5001"');
  const registry = { dir: "/state/registry", ...pair("r"), address: "0.0.0.0:5000", level: "warn" } as const;
  expect(parse(registryConfig(registry))).toMatchObject({
    http: { addr: "0.0.0.0:5000", tls: { certificate: "/pki/r.crt", key: "/pki/r.key" } },
  });
});

test("the registry of builds accepts tokens of the platform's key alone", () => {
  const registry = {
    data: "/state/builds",
    config: "/c",
    keys: "/pki",
    host: "10.244.0.1:5001",
    tls: pair("r"),
  };
  const realm = "http://127.0.0.1:8081/registry/token";
  expect(parse(buildsRegistryConfig({ ...registry, realm }, "/pki/keys.jwks"))).toMatchObject({
    storage: { filesystem: { rootdirectory: "/state/builds" } },
    auth: {
      token: {
        realm,
        service: "slipway-registry",
        issuer: "slipway",
        jwks: "/pki/keys.jwks",
        signingalgorithms: ["ES256"],
      },
    },
    http: { addr: "10.244.0.1:5001" },
  });
});

test("the Git server has HTTPS on one address, no SSH, no registration, and may call hooks of this machine", () => {
  const secrets = { secretKey: "s1", internalToken: "s2", lfsSecret: "s3", oauthSecret: "s4" };
  const lines = gitConfig("10.244.0.1", 5002, secrets).split("\n");
  for (const line of [
    "ROOT_URL = https://10.244.0.1:5002/",
    "HTTP_ADDR = 10.244.0.1",
    "DISABLE_SSH = true",
    "INSTALL_LOCK = true",
    "DISABLE_REGISTRATION = true",
    "ALLOWED_HOST_LIST = loopback, private",
  ]) {
    expect(lines).toContain(line);
  }
});

test("the kubelet answers nobody without a certificate or token", () => {
  const config = parse(
    kubeletConfig({
      authority: "/pki/ca.crt",
      server: pair("kubelet"),
      containerdSocket: "/run/slipway/containerd.sock",
      resolvConf: "/etc/resolv.conf",
      podLogsDir: "/state/pod-logs",
    }),
  ) as Record<string, unknown>;
  expect(config).toMatchObject({
    address: addresses.node,
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true } },
    authorization: { mode: "Webhook" },
    maxPods,
    podPidsLimit: 1024,
  });
  expect(parse(proxyConfig("/conf/kube-proxy.kubeconfig"))).toMatchObject({
    mode: "nftables",
    nodePortAddresses: ["10.244.0.1/32"],
  });
});

test("the guard closes every port of the cluster, and the registry to pods too", () => {
  const rules = guardRules();
  for (const port of Object.values(ports)) {
    expect(rules).toContain(String(port));
  }
  const lines = rules.split("\n").map((line) => line.trim());
  expect(lines.indexOf(`tcp dport ${ports.registry} drop`)).toBeLessThan(
    lines.indexOf(`iifname "${addresses.bridge}" accept`),
  );
});

test("node ports are open to other networks, on the node's address alone, and none of the cluster's own is among them", () => {
  const lines = guardRules()
    .split("\n")
    .map((line) => line.trim());
  const open = lines.indexOf("ip daddr 10.244.0.1 tcp dport 30000-32767 accept");
  const closed = lines.findIndex((line) => line.endsWith("ct state new drop"));
  expect(open).toBeGreaterThan(-1);
  expect(open).toBeLessThan(closed);
  for (const port of Object.values(ports)) {
    expect(port < nodePorts.first || port > nodePorts.last).toBe(true);
  }
});

test("etcd accepts clients with a certificate only, and keeps what it acknowledges", () => {
  const options = {
    dataDir: "/etcd",
    clientPort: 1,
    peerPort: 2,
    authority: "/pki/ca.crt",
    server: pair("etcd"),
  };
  expect(etcdArgs(options)).toContain("--client-cert-auth=true");
  expect(etcdArgs(options)).not.toContain("--unsafe-no-fsync");
  expect(etcdArgs({ ...options, unsafe: true })).toContain("--unsafe-no-fsync");
});

test("flags given on top win over kube-apiserver's defaults", () => {
  const argv = apiserverArgs({
    port: 6443,
    bindAddress: "0.0.0.0",
    etcdPort: 2379,
    authority: "/pki/ca.crt",
    server: pair("apiserver"),
    etcdClient: pair("etcd-client"),
    serviceAccountKeys: pair("sa"),
    serviceCidr: addresses.serviceCidr,
    auditPolicy: "/conf/audit.yaml",
    auditLog: "/logs/audit.log",
    extra: { "anonymous-auth": false },
  });
  expect(argv.filter((arg) => arg.startsWith("--anonymous-auth"))).toEqual(["--anonymous-auth=false"]);
});

test("the audit log never has bodies", () => {
  expect(new Set(auditPolicy(["reader"]).rules.map((rule) => rule.level))).toEqual(
    new Set(["None", "Metadata"]),
  );
});
