import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { systemClock } from "@slipway/process";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ensureAuthority, ensureCertificate } from "../../../hack/cluster/certificates.ts";
import { run } from "../../../hack/lib/exec.ts";
import { startCluster, type TestCluster } from "../../../test/kit/operator/harness.ts";
import { createRunLogs } from "../logs/run-logs.ts";
import { clusterRules, kubeletReaderRules, namespaceRules, organizationRules } from "../rules.ts";
import { KUBELET_READER, requestedTokens } from "./kubelet-token.ts";

/** Permissions and credentials on a real apiserver, as the chart gives them. */

const SYSTEM = "slipway-system";
const TENANT = "slipway-org-alpha";
let cluster: TestCluster;
/** The operator, with its own rights and no more. */
let operator: KubeClient;

beforeAll(async () => {
  cluster = await startCluster();
  const { client } = cluster;
  for (const name of [SYSTEM, TENANT]) {
    await client.create(resources.namespaces, { metadata: { name } });
  }
  for (const name of ["slipway-operator", KUBELET_READER]) {
    await client.create(resources.serviceAccounts, { metadata: { name, namespace: SYSTEM } });
  }
  const objects = [
    role("ClusterRole", "operator", clusterRules),
    binding("ClusterRoleBinding", "operator", "ClusterRole", "slipway-operator"),
    role("ClusterRole", "organization", organizationRules),
    binding("RoleBinding", "organization", "ClusterRole", "slipway-operator", TENANT),
    role("Role", "operator", namespaceRules, SYSTEM),
    binding("RoleBinding", "operator", "Role", "slipway-operator", SYSTEM),
    role("ClusterRole", "reader", kubeletReaderRules),
    binding("ClusterRoleBinding", "reader", "ClusterRole", KUBELET_READER),
  ];
  await kubectl(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }));
  const token = await kubectl(["-n", SYSTEM, "create", "token", "slipway-operator"]);
  const config = loadKubeConfig({ file: cluster.api.kubeconfig });
  config.users = [{ name: "operator", token: token.trim() }];
  config.contexts = config.contexts.map((context) => ({ ...context, user: "operator" }));
  operator = KubeClient.fromConfig(config);
}, 240_000);
afterAll(async () => {
  await operator?.close();
  await cluster?.stop();
});

const kubectl = (args: string[], input?: string) =>
  run(cluster.api.binary, ["kubectl", "--kubeconfig", cluster.api.kubeconfig, ...args], { input });

const role = (kind: string, name: string, rules: unknown, namespace?: string) => ({
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind,
  metadata: { name, namespace },
  rules,
});
const binding = (kind: string, name: string, roleKind: string, account: string, namespace?: string) => ({
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind,
  metadata: { name, namespace },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: roleKind, name },
  subjects: [{ kind: "ServiceAccount", name: account, namespace: SYSTEM }],
});

/** Whether an account may get a resource, or a subresource; `kubectl auth can-i` ends with 1 for no. */
const mayGet = (account: string, what: string) => {
  const [resource = "", subresource] = what.split("/");
  const args = ["auth", "can-i", "get", resource, ...(subresource ? [`--subresource=${subresource}`] : [])];
  return kubectl([...args, `--as=system:serviceaccount:${SYSTEM}:${account}`]).then(
    (answer) => answer.trim() === "yes",
    () => false,
  );
};

test("the operator gets tokens of the reader, which may read nodes' stats and nothing else", async () => {
  const token = await requestedTokens(operator, SYSTEM, systemClock).get();
  const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as {
    sub: string;
  };
  expect(claims.sub).toBe(`system:serviceaccount:${SYSTEM}:${KUBELET_READER}`);
  expect(await mayGet(KUBELET_READER, "nodes/stats")).toBe(true);
  for (const what of ["nodes/proxy", "nodes/metrics", "nodes/log", "nodes", "pods", "secrets"]) {
    expect([what, await mayGet(KUBELET_READER, what)]).toEqual([what, false]);
  }
});

test("the operator itself may neither ask kubelets nor make tokens of others", async () => {
  expect(await mayGet("slipway-operator", "nodes/stats")).toBe(false);
  expect(await mayGet("slipway-operator", "nodes/proxy")).toBe(false);
  const own = await operator
    .create<KubernetesObject>(
      resources.serviceAccounts,
      {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        metadata: { name: "slipway-operator", namespace: SYSTEM },
      },
      { subresource: "token" },
    )
    .catch((error: unknown) => error);
  expect(own).toMatchObject({ status: 403 });
});

test("a log of a pod that does not exist, or whose container never started, is lost on a real apiserver", async () => {
  const logs = createRunLogs({
    client: operator,
    store: () => Promise.reject(new Error("nothing to store")),
  });
  const target = (podName: string) => ({
    organizationId: "alpha",
    namespace: TENANT,
    projectId: "p1",
    runId: "p1-29000000",
    scheduledAt: new Date(),
    podName,
  });
  const signal = AbortSignal.timeout(20_000);
  expect(await logs.archive(target("gone"), signal)).toBe("unavailable");

  const containers = [{ name: "app", image: "registry.example/app:1" }];
  const pod = {
    metadata: { name: "never-began", namespace: TENANT },
    spec: { containers, nodeName: "no-such-node" },
  };
  await cluster.client.create<KubernetesObject>(resources.pods, pod as KubernetesObject);
  expect(await logs.archive(target("never-began"), signal)).toBe("unavailable");
});

describe("a log on a node", () => {
  const ID = "d689083f5f1c1c2f5d2f1e0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a1b0c";
  let dir: string;
  let kubelet: Server;
  /** Requests for logs that the apiserver sent on, with their answers, which go on until a test ends them. */
  let asked: { url: string; answer: ServerResponse }[];

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "slipway-kubelet-"));
    const authority = await ensureAuthority(dir, "ca");
    const serving = await ensureCertificate(dir, "kubelet", authority, {
      commonName: "system:node:n1",
      altNames: ["IP:127.0.0.1"],
    });
    const [cert, key] = await Promise.all([readFile(serving.cert), readFile(serving.key)]);
    kubelet = createServer({ cert, key }, ({ url = "" }, answer) => {
      asked.push({ url, answer });
      answer.writeHead(200).flushHeaders();
    });
    await new Promise<void>((resolve) => kubelet.listen(0, "127.0.0.1", resolve));
    const Port = (kubelet.address() as AddressInfo).port;
    const status = {
      addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
      daemonEndpoints: { kubeletEndpoint: { Port } },
    };
    const node = await cluster.client.create<KubernetesObject>(resources.nodes, { metadata: { name: "n1" } });
    await cluster.client.patch(
      resources.nodes,
      { name: node.metadata?.name ?? "" },
      { status },
      { subresource: "status" },
    );
    const containers = [{ name: "app", image: "registry.example/app:1" }];
    const pod = { metadata: { name: "runs", namespace: TENANT }, spec: { containers, nodeName: "n1" } };
    await cluster.client.create<KubernetesObject>(resources.pods, pod as KubernetesObject);
  });
  beforeEach(() => {
    asked = [];
  });
  afterAll(async () => {
    kubelet?.closeAllConnections();
    kubelet?.close();
    await rm(dir, { recursive: true, force: true });
  });

  const stored: string[] = [];
  const logs = () => createRunLogs({ client: operator, store: async (_, text) => void stored.push(text) });
  const target = {
    organizationId: "alpha",
    namespace: TENANT,
    projectId: "p1",
    runId: "p1-29000000",
    scheduledAt: new Date(),
    podName: "runs",
  };
  const signal = () => AbortSignal.timeout(20_000);

  test("is followed with the operator's own rights, as it is written and to its container's end", async () => {
    const followed = await logs().follow(target, signal());
    expect(asked.map(({ url }) => url)).toEqual([
      `/containerLogs/${TENANT}/runs/app?follow=true&tailLines=512`,
    ]);
    asked[0]?.answer.write("up\n");
    await sleep(1_500);
    asked[0]?.answer.write("bye\n");
    asked[0]?.answer.end(
      `rpc error: code = NotFound desc = an error occurred when try to find container "${ID}": not found`,
    );
    await followed.ended;
    expect(await followed.store()).toBe("stored");
    expect(stored.splice(0)).toEqual(["up\nbye\n"]);
  });

  test("is closed at the node, too, once it is aborted", async () => {
    const abort = new AbortController();
    const followed = await logs().follow(target, abort.signal);
    const closed = once(asked[0]?.answer as ServerResponse, "close");
    abort.abort();
    await Promise.all([followed.ended, closed]);
  });

  test("that the node has removed is lost once its pod is being deleted, and not before", async () => {
    const removed = `unable to retrieve container logs for containerd://${ID}`;
    const archive = async () => {
      asked = [];
      const captured = logs().archive(target, signal());
      await expect.poll(() => asked.length).toBe(1);
      asked[0]?.answer.end(removed);
      return await captured;
    };
    await expect(archive()).rejects.toMatchObject({ message: removed });
    await cluster.client.delete(resources.pods, { namespace: TENANT, name: "runs" });
    expect(await archive()).toBe("unavailable");
    expect(stored).toEqual([]);
  });
});
