import { KubeClient, type KubernetesObject, resources, Store } from "@slipway/controller-runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { dropSecretData } from "../projects/secrets.ts";
import { SecretContents } from "./contents.ts";

const namespace = "slipway-org-alpha";
const signal = new AbortController().signal;
let api: FakeApiserver;
let client: KubeClient;
let secrets: Store;

beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
  secrets = new Store({ transform: dropSecretData });
  secrets.replace([], "0");
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

async function make(name: string, content: Record<string, string>): Promise<void> {
  const data = Object.fromEntries(
    Object.entries(content).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
  );
  const created = { metadata: { name, namespace }, data } as KubernetesObject;
  secrets.upsert(await client.create<KubernetesObject>(resources.secrets, created));
}

test("has nothing of a Secret but what is read of it, and reads a version once", async () => {
  await make("env", { PEER: `\${project:shop.host}`, PASSWORD: "literal" });
  const contents = new SecretContents({ client, secrets, isRead: (_, value) => value !== "literal" });
  const read = () => contents.read({ namespace, name: "env" }, { signal });
  expect(await read()).toEqual({ PEER: `\${project:shop.host}` });
  const requests = api.requests.length;
  expect(await read()).toEqual({ PEER: `\${project:shop.host}` });
  expect(api.requests.length).toBe(requests);
});

test("keeps so many bytes of those that were read last", async () => {
  for (const name of ["one", "two", "three"]) {
    await make(name, { KEY: "x".repeat(100) });
  }
  const contents = new SecretContents({ client, secrets, isRead: () => true, maxBytes: 250 });
  const requestsOf = async (name: string) => {
    const before = api.requests.length;
    await contents.read({ namespace, name }, { signal });
    return api.requests.length - before;
  };
  expect([await requestsOf("one"), await requestsOf("two"), await requestsOf("one")]).toEqual([1, 1, 0]);
  expect(await requestsOf("three")).toBe(1);
  expect([await requestsOf("one"), await requestsOf("two")]).toEqual([0, 1]);
});
