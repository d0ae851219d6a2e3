import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { run } from "../lib/exec.ts";
import { startApiserver, type TestApiserver } from "./apiserver.ts";
import { kubernetesVersion } from "./binaries.ts";

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

test("writes an audit line for a write and none for a read", async () => {
  await kubectl("create", "configmap", "audited");
  await kubectl("get", "configmap", "audited");
  const lines = (await readFile(api.auditLog, "utf8")).trim().split("\n");
  const events = lines.map((line) => JSON.parse(line) as { verb: string; objectRef?: { name?: string } });
  expect(events.filter((event) => event.objectRef?.name === "audited").map((event) => event.verb)).toEqual([
    "create",
  ]);
});
