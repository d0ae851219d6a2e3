import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { run } from "../lib/exec.ts";
import { startApiserver, type TestApiserver } from "./apiserver.ts";
import { kubernetesVersion } from "./programs.ts";

let api: TestApiserver;
const kubectl = (...args: string[]) => run(api.binary, ["kubectl", "--kubeconfig", api.kubeconfig, ...args]);

beforeAll(async () => {
  api = await startApiserver();
});
afterAll(() => api.stop());

test("reports the pinned version of Kubernetes", async () => {
  const version = JSON.parse(await kubectl("version", "-o", "json")) as Record<
    string,
    { gitVersion: string }
  >;
  expect(version.serverVersion?.gitVersion).toBe(kubernetesVersion);
  expect(version.clientVersion?.gitVersion).toBe(kubernetesVersion);
});

test("keeps its data over a kill and a restart, on the same address", async () => {
  await kubectl("create", "configmap", "kept", "--from-literal=a=b");
  await api.kill();
  await expect(kubectl("get", "configmap", "kept", "--request-timeout=2s")).rejects.toThrow(/refused/);
  await api.restart();
  expect(await kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.a}")).toBe("b");
});

test("writes an audit line for a write, and for a read of the administrator", async () => {
  await kubectl("create", "configmap", "audited");
  await kubectl("get", "configmap", "audited");
  const lines = (await readFile(api.auditLog, "utf8")).trim().split("\n");
  const events = lines.map((line) => JSON.parse(line) as { verb: string; objectRef?: { name?: string } });
  expect(events.filter((event) => event.objectRef?.name === "audited").map((event) => event.verb)).toEqual([
    "create",
    "get",
  ]);
});

test("runs the programs of the folder that KUBEBUILDER_ASSETS names", async () => {
  const assets = await mkdtemp(join(tmpdir(), "slipway-assets-"));
  for (const name of ["etcd", "kube-apiserver", "kubectl"]) {
    const program = `#!/bin/sh\necho ${name} >>"${assets}/started"\nexec ${api.binary} ${name} "$@"\n`;
    await writeFile(join(assets, name), program, { mode: 0o700 });
  }
  vi.stubEnv("KUBEBUILDER_ASSETS", assets);
  const other = await startApiserver();
  try {
    const kubeconfig = ["kubectl", "--kubeconfig", other.kubeconfig];
    expect(await run(other.binary, [...kubeconfig, "get", "namespace", "default", "-o", "name"])).toBe(
      "namespace/default\n",
    );
    expect((await readFile(join(assets, "started"), "utf8")).split("\n")).toEqual(
      expect.arrayContaining(["etcd", "kube-apiserver", "kubectl"]),
    );
  } finally {
    vi.unstubAllEnvs();
    await other.stop();
    await rm(assets, { recursive: true });
  }
});
