import { KubeClient, type KubernetesObject, resources, Store } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import type { OrganizationUsage } from "@slipway/ledger";
import { silentLogger } from "@slipway/process";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { reconcileUsage } from "./quotas/usage.ts";
import { bytesOfData, dropSecretData, isEnvSecret } from "./secrets.ts";

const namespace = "slipway-org-alpha";
const { signal } = new AbortController();
const env = (name: string, annotations?: Record<string, string>) => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: {
    name,
    namespace,
    labels: { "slipway.dev/project": "shop", "app.kubernetes.io/managed-by": "slipway" },
    ...(annotations ? { annotations } : {}),
  },
  // 5 bytes of name and 7 of value.
  data: { COLOR: Buffer.from("größe").toString("base64") },
});

let api: FakeApiserver;
let client: KubeClient;
let secrets: Store;
const rows = new Map<string, OrganizationUsage & { idleSeconds: number }>();
const ledger = {
  list: async () => [...rows.values()],
  record: async (found: readonly OrganizationUsage[]) => {
    for (const one of found) {
      rows.set(one.name, { ...one, idleSeconds: 600 });
    }
  },
  release: async (deleted: readonly OrganizationUsage[]) => {
    for (const { name } of deleted) {
      rows.delete(name);
    }
  },
};
let version = 1_000;
const projects = new Store<Project>();
const observe = async () => {
  const live = await client.listAll<KubernetesObject>(resources.secrets, { namespace });
  version += 1;
  secrets.replace(live, String(version));
};
const compare = async () => {
  await observe();
  await reconcileUsage({ ledger, projects, secrets, client, log: silentLogger }, signal);
};

beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
  secrets = new Store({ transform: dropSecretData });
  projects.replace([], "1");
  rows.clear();
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

test("a Secret of variables of an earlier version is read once, recorded, and counted", async () => {
  await client.create(resources.secrets, env("shop-env-00000001"));
  await compare();
  await compare();
  expect([...rows.values()]).toMatchObject([
    { organizationId: "alpha", kind: "variableBytes", name: "shop-env-00000001", amount: 12 },
  ]);
  const live = await client.get(resources.secrets, { namespace, name: "shop-env-00000001" });
  expect(live.metadata?.annotations).toEqual({ "slipway.dev/env-bytes": "12" });
});

test("a recorded one is counted by its annotation, and a deleted one is not counted any more", async () => {
  await client.create(resources.secrets, env("shop-env-00000002", { "slipway.dev/env-bytes": "34" }));
  await compare();
  expect(rows.get("shop-env-00000002")?.amount).toBe(34);
  await client.delete(resources.secrets, { namespace, name: "shop-env-00000002" });
  await compare();
  expect(rows.size).toBe(0);
});

test("one that is deleted before it is read delays nobody else's account", async () => {
  await client.create(resources.secrets, env("shop-env-00000003"));
  await client.create(resources.secrets, env("shop-env-00000004"));
  await observe();
  await client.delete(resources.secrets, { namespace, name: "shop-env-00000003" });
  await reconcileUsage({ ledger, projects, secrets, client, log: silentLogger }, signal);
  await compare();
  expect([...rows.keys()]).toEqual(["shop-env-00000004"]);
});

test("one that cannot be read keeps nothing else from being counted, and is read again", async () => {
  await client.create(resources.secrets, env("shop-env-00000005"));
  await client.create(resources.secrets, env("shop-env-00000006"));
  const isRefused = ({ method, path }: { method: string; path: string }) =>
    method === "GET" && path.endsWith("/shop-env-00000005");
  api.failNext(isRefused, { status: 403, reason: "Forbidden", times: 2 });
  await compare();
  await compare();
  expect([...rows.keys()]).toEqual(["shop-env-00000006"]);
  await compare();
  await compare();
  expect([...rows.keys()].toSorted()).toEqual(["shop-env-00000005", "shop-env-00000006"]);
});

test("a user's own Secret, a login to a registry and another project's name are none of the API's variables", () => {
  const { metadata } = env("shop-env-00000001");
  expect(isEnvSecret({ metadata })).toBe(true);
  expect(isEnvSecret({ metadata: { ...metadata, labels: {} } })).toBe(false);
  expect(isEnvSecret({ metadata: { ...metadata, name: "shop-pull-00000001" } })).toBe(false);
  expect(isEnvSecret({ metadata: { ...metadata, name: "other-env-00000001" } })).toBe(false);
});

test("bytes of data are those of names and decoded values", () => {
  expect(bytesOfData({})).toBe(0);
  expect(bytesOfData({ A: "", BC: "eHl6" })).toBe(6);
});
