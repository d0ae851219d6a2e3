import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { chartValues, merged } from "./chart.ts";
import { clientOf } from "./client-address.ts";
import { renderStack, type Stack } from "./file.ts";
import { readyPods } from "./ready-pods.ts";
import { curlLine, firstApplication, firstSteps, summary } from "./summary.ts";

const image = "10.244.0.1:5000/slipway/sample-http:v1-0123";
const stack: Stack = {
  url: "http://127.0.0.1:8081",
  organization: { organization_id: "oabc", api_key: "the-api-key", owner_token: "the-owner-token" },
  ingressUrl: "http://127.0.0.1:8080",
  metricsUrls: ["http://10.244.0.5:9090/metrics", "http://10.244.0.6:9090/metrics"],
  images: {
    operator: "o",
    apiServer: "a",
    ledger: "l",
    valkey: "v",
    analytics: "c",
    sampleHttp: image,
    sampleHttpV2: "v2",
    sampleJob: "job",
  },
  clientCidr: "10.244.0.1/32",
  databaseCa: "/repo/.slipway/database-ca.crt",
  git: {
    url: "https://10.244.0.1:5002",
    username: "slipway",
    token: "the-git-token",
    caFile: "/repo/.slipway/pki/ca.crt",
  },
  kubeconfig: "/repo/.slipway/kubeconfig",
};

test("the stack file has every key of the contract that has a value", () => {
  expect(
    renderStack(stack)
      .split("\n")
      .map((line) => line.split("=")[0]),
  ).toEqual([
    "SLIPWAY_URL",
    "SLIPWAY_ORGANIZATION_ID",
    "SLIPWAY_API_KEY",
    "SLIPWAY_OWNER_TOKEN",
    "SLIPWAY_INGRESS_URL",
    "SLIPWAY_DOMAIN_ZONE",
    "SLIPWAY_METRICS_URLS",
    "SLIPWAY_IMAGE_HTTP",
    "SLIPWAY_IMAGE_HTTP_V2",
    "SLIPWAY_IMAGE_JOB",
    "SLIPWAY_CLIENT_CIDR",
    "SLIPWAY_DATABASE_CA",
    "SLIPWAY_GIT_URL",
    "SLIPWAY_GIT_USERNAME",
    "SLIPWAY_GIT_TOKEN",
    "SLIPWAY_GIT_CA",
    "KUBECONFIG",
    "",
  ]);
  expect(
    renderStack({ ...stack, metricsUrls: [], clientCidr: undefined, databaseCa: undefined, git: undefined }),
  ).not.toMatch(/METRICS|CIDR|DATABASE|GIT/);
});

test("the curl line sends the body of the first application, with the image from the stack file", () => {
  const script = `curl() { while [ "$1" != -d ]; do shift; done; printf %s "$2"; }; ${curlLine()}`;
  const env = {
    ...process.env,
    SLIPWAY_URL: stack.url,
    SLIPWAY_API_KEY: "the-api-key",
    SLIPWAY_IMAGE_HTTP: image,
  };
  const body = execFileSync("sh", ["-c", script], { encoding: "utf8", env });
  expect(JSON.parse(body)).toEqual(firstApplication(image));
});

test("the summary shows addresses and no secret", () => {
  expect(summary(stack)).toContain("http://127.0.0.1:8081/v1");
  expect(summary(stack)).not.toMatch(/the-api-key|the-owner-token/);
  expect(summary({ ...stack, url: undefined })).toContain("port-forward");
  expect(summary(stack)).toContain(firstSteps());
  expect(firstSteps()).toMatch(/stack\.env\n.*curl .*\/v1\/project/);
});

test("the client is read from the access-log line of its path alone", () => {
  const log = [
    '{"level":"info","message":"Starting /client-address-1"}',
    '{"ClientHost":"10.0.0.1","RequestPath":"/client-address-12"}',
    "GET /client-address-1 no json",
    '{"ClientHost":"10.244.0.1","RequestPath":"/client-address-1"}',
  ].join("\n");
  expect(clientOf(log, "/client-address-1")).toBe("10.244.0.1");
  expect(clientOf(log, "/other")).toBeUndefined();
});

test("a pod is ready when its condition is True, it has an address and it is not being deleted", () => {
  const pod = (name: string, ready: string, podIP?: string, deletionTimestamp?: string) => ({
    metadata: { name, deletionTimestamp },
    status: { podIP, conditions: [{ type: "Ready", status: ready }] },
  });
  const items = [
    pod("b", "True", "10.0.0.2"),
    pod("starting", "False", "10.0.0.3"),
    pod("leaving", "True", "10.0.0.4", "2026-01-01T00:00:00Z"),
    pod("unassigned", "True"),
    pod("a", "True", "10.0.0.1"),
    { metadata: { name: "new" }, status: {} },
  ];
  expect(readyPods({ items }).map((ready) => ready.name)).toEqual(["a", "b"]);
});

test("values name the API's entry point only where the ingress is ours, and addresses only where they are known", () => {
  const images = { operator: "o", apiServer: "a", ledger: "l", valkey: "v", analytics: "c" };
  const networks = {
    pods: "10.244.0.0/22",
    apiserver: ["10.96.0.1/32"],
    nodes: ["10.244.0.1/32"],
    denied: ["10.244.0.0/22"],
  };
  const postgresql = { "17": { image: "slipway.local/slipway/postgresql:17-0123", uid: 999, gid: 999 } };
  const databases = { images: { postgresql }, host: "10.244.0.1" };
  const known = {
    networks,
    collector: { podLogs: "/state/pod-logs", stateFolder: "/state/collector" },
    allowList: "traefik",
    kubeletsVerified: true,
    ownIngress: true,
    databases,
    builds: {
      image: "slipway.local/slipway/builder:0123",
      registry: { host: "10.244.0.1:5001", ca: "(the authority)" },
      git: { host: "10.244.0.1:5002", ca: "(the authority)", hookUrl: "http://127.0.0.1:8081" },
      baseImages: { node: { "24": "10.244.0.1:5001/base/node:24" } },
      ca: "",
      toolsSecret: "slipway-build-tools",
    },
  } as const;
  expect(chartValues({ images, rateLimitScale: 2, ...known })).toMatchObject({
    rateLimitScale: 2,
    rolloutDeadlineSeconds: 90,
    ingress: { probeUrl: "http://traefik.slipway-ingress", allowList: "traefik" },
    operator: { resources: { requests: { cpu: "200m" } } },
    apiServer: {
      resources: { requests: { cpu: "100m" } },
      ingress: { enabled: true, annotations: { "traefik.ingress.kubernetes.io/router.entrypoints": "api" } },
      trustedProxies: ["10.244.0.0/22"],
    },
    kubelet: { verify: true },
    analytics: {
      enabled: true,
      collector: { podLogs: "/state/pod-logs", stateFolder: "/state/collector" },
    },
    databases: { images: { postgresql }, outside: { type: "NodePort", host: "10.244.0.1" } },
    networkPolicy: {
      deniedCidrs: ["10.244.0.0/22"],
      apiserver: { cidrs: ["10.96.0.1/32"] },
      kubelet: { cidrs: ["10.244.0.1/32"] },
      git: { ports: [443, 5002] },
      webhooks: { ports: [443, 5010, 5011] },
    },
    git: { allowedHosts: ["10.244.0.1:5002"], ca: "(the authority)", hookUrl: "http://127.0.0.1:8081" },
    webhooks: { allowedHosts: ["10.244.0.1:5010", "10.244.0.1:5011"], ca: "(the authority)" },
    email: {
      from: "slipway@stack.example",
      publicUrl: "http://127.0.0.1:8081",
      smtp: { host: "10.244.0.1", port: 5012, ca: "(the authority)" },
    },
    billing: {
      payments: {
        stripe: { existingSecret: { name: "slipway-payment-secrets", key: "secrets" } },
        generic: { existingSecret: { name: "slipway-payment-secrets", key: "secrets" } },
      },
    },
    builds: {
      enabled: true,
      image: "slipway.local/slipway/builder:0123",
      registry: {
        host: "10.244.0.1:5001",
        ca: "(the authority)",
        networkPolicy: { cidrs: ["10.244.0.1/32"], port: 5001 },
      },
      seccompProfile: "slipway/builder.json",
      opened: [
        { address: "10.244.0.1", port: 5001 },
        { address: "10.244.0.1", port: 5002 },
      ],
      toolsSecret: "slipway-build-tools",
    },
  });
  expect(merged({ a: 1, jobs: { x: 1, y: [1] } }, { jobs: { y: [2], z: 3 }, b: null })).toEqual({
    a: 1,
    jobs: { x: 1, y: [2], z: 3 },
    b: null,
  });
  const foreign = chartValues({
    images,
    rateLimitScale: 1,
    networks: undefined,
    collector: undefined,
    allowList: "none",
    kubeletsVerified: false,
    ownIngress: false,
    databases: { images: {}, host: undefined },
    builds: undefined,
  });
  expect(foreign).not.toHaveProperty("databases.outside");
  expect(foreign).not.toHaveProperty("networkPolicy");
  expect(foreign).not.toHaveProperty("git");
  expect(foreign).not.toHaveProperty("builds");
  expect(foreign).not.toHaveProperty("analytics");
  expect(foreign).not.toHaveProperty("ingress.probeUrl");
  expect(foreign).toMatchObject({
    ingress: { allowList: "none" },
    kubelet: { verify: false },
    apiServer: { ingress: { enabled: false } },
  });
});
