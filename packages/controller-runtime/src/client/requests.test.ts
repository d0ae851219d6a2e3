import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeApiserver } from "../../../../test/kit/apiserver/fake-apiserver.ts";
import { KubeClient } from "./client.ts";
import { resources } from "./resources.ts";
import type { KubernetesObject } from "./types.ts";

let apiserver: FakeApiserver;
let client: KubeClient;
let noted: Record<string, string | null> | undefined;

beforeEach(async () => {
  apiserver = await FakeApiserver.start();
  client = KubeClient.forUrl(apiserver.url, {
    annotate: ({ plural }) => (plural === "configmaps" ? noted : undefined),
  });
});
afterEach(async () => {
  await client.close();
  await apiserver.stop();
});

const ref = { namespace: "a", name: "one" };
const read = async () => (await client.get(resources.configMaps, ref)).metadata?.annotations;

describe("annotations for every write", () => {
  it("are on what is created and patched, also through a client that ends with a signal; null removes them", async () => {
    noted = { by: "first" };
    const object: KubernetesObject = { metadata: { ...ref, annotations: { own: "1" } } };
    await client.create(resources.configMaps, object);
    expect(await read()).toEqual({ own: "1", by: "first" });
    expect(object.metadata?.annotations).toEqual({ own: "1" });

    noted = { by: "second" };
    const bounded = client.until(new AbortController().signal);
    await bounded.patch(resources.configMaps, ref, { metadata: { annotations: { own: "2" } } });
    expect(await read()).toEqual({ own: "2", by: "second" });

    noted = { by: null };
    await client.patch(resources.configMaps, ref, { data: { a: "b" } });
    expect(await read()).toEqual({ own: "2" });
  });

  it("are not on objects of other kinds", async () => {
    noted = { by: "first" };
    await client.create(resources.secrets, { metadata: ref });
    expect((await client.get(resources.secrets, ref)).metadata?.annotations).toBeUndefined();
  });
});
