import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { loadClusterConfig } from "./cluster-config.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "service-account-"));
  await writeFile(join(folder, "ca.crt"), "an authority\n");
  await writeFile(join(folder, "token"), "first\n");
});
afterEach(() => rm(folder, { recursive: true }));

const load = (host: string) =>
  loadClusterConfig({ KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: "6443" }, folder);

it("reads a pod's service account, each time as it is now", async () => {
  const config = await load("10.96.0.1");
  expect(config.getCurrentCluster()).toMatchObject({
    server: "https://10.96.0.1:6443",
    caFile: join(folder, "ca.crt"),
    skipTLSVerify: false,
  });
  const options = { headers: { accept: "application/json" } };
  await config.applyToHTTPSOptions(options);
  expect(options).toEqual({
    ca: "an authority\n",
    headers: { accept: "application/json", Authorization: "Bearer first" },
  });
  await writeFile(join(folder, "token"), "second\n");
  await config.applyToHTTPSOptions(options);
  expect(options.headers).toMatchObject({ Authorization: "Bearer second" });
});

it("reads another folder that the environment names, as a process outside of a pod has it", async () => {
  const env = { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_ACCOUNT_DIR: folder };
  const options: { headers?: Record<string, string> } = {};
  await (await loadClusterConfig(env)).applyToHTTPSOptions(options);
  expect(options.headers).toEqual({ Authorization: "Bearer first" });
});

it("puts an IPv6 address in brackets", async () => {
  expect((await load("fd00::1")).getCurrentCluster()?.server).toBe("https://[fd00::1]:6443");
});

it("prefers a kubeconfig that is named", async () => {
  const file = join(folder, "config");
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "one",
    contexts: [{ name: "one", context: { cluster: "c", user: "u" } }],
    clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:1" } }],
    users: [{ name: "u", user: { token: "t" } }],
  };
  await writeFile(file, JSON.stringify(kubeconfig));
  const env = { KUBECONFIG: file, KUBERNETES_SERVICE_HOST: "10.96.0.1" };
  const config = await loadClusterConfig(env, folder);
  expect(config.getCurrentCluster()?.server).toBe("https://127.0.0.1:1");
});
