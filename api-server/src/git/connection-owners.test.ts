import { KubeClient } from "@slipway/controller-runtime";
import { createLogger } from "@slipway/process";
import { afterEach, beforeEach, expect, it } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { gitConnectionResource } from "../resources.ts";
import { ConnectionStore } from "./connection-owners.ts";

let apiserver: FakeApiserver;
let kube: KubeClient;
let store: ConnectionStore;
beforeEach(async () => {
  apiserver = await FakeApiserver.start();
  kube = KubeClient.forUrl(apiserver.url);
  store = new ConnectionStore({
    client: kube,
    logger: createLogger("api-server", "silent", { write: () => {} }),
  });
});
afterEach(async () => {
  await store.stop();
  await kube.close();
  await apiserver.stop();
});

const put = (namespace: string, name: string) =>
  kube.create(gitConnectionResource, {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "GitConnection",
    metadata: { namespace, name },
  });

it("a connection is its organization's from its creation to its deletion", async () => {
  await put("slipway-org-acme", "g1");
  store.start();
  await eventually("the list", () => store.hasSynced);
  expect(["g1", "g2", ""].map((id) => store.organizationOf(id))).toEqual(["acme", undefined, undefined]);
  await put("slipway-org-umbrella", "g2");
  await eventually("the new one", () => store.organizationOf("g2") === "umbrella");
  await kube.delete(gitConnectionResource, { namespace: "slipway-org-acme", name: "g1" });
  await eventually("its deletion", () => store.organizationOf("g1") === undefined);
});

it("a name that two organizations have, or that is outside of every one, has no owner", async () => {
  await put("slipway-org-acme", "g1");
  await put("slipway-org-umbrella", "g1");
  await put("default", "g2");
  store.start();
  await eventually("the list", () => store.hasSynced);
  expect(["g1", "g2"].map((id) => store.organizationOf(id))).toEqual([undefined, undefined]);
});

it("while not all are read none is refused as unknown", () => {
  expect(() => store.organizationOf("g1")).toThrow(expect.objectContaining({ status: 503 }));
});
