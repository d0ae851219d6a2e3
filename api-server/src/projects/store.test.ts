import { KubeClient } from "@slipway/controller-runtime";
import { organizationNamespace, type Project } from "@slipway/crds";
import { createLogger } from "@slipway/process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { exampleSpec, ZONE } from "../../../test/kit/api-server/harness.ts";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { projectResource } from "../resources.ts";
import { ProjectStore } from "./store.ts";

let apiserver: FakeApiserver;
let kube: KubeClient;
let store: ProjectStore;
let published: [string, string][];

beforeEach(async () => {
  apiserver = await FakeApiserver.start();
  kube = KubeClient.forUrl(apiserver.url);
  published = [];
  store = new ProjectStore({
    client: kube,
    logger: createLogger("api-server", "silent"),
    zone: ZONE,
    writes: { publish: async (organization, version) => void published.push([organization, version]) },
  });
  store.start();
  await eventually("synced and watching", () => store.hasSynced && apiserver.openWatches === 1);
});
afterEach(async () => {
  await store.stop();
  await kube.close();
  await apiserver.stop();
});

const create = (name: string) =>
  kube.create<Project>(projectResource, {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: { name, namespace: organizationNamespace("acme") },
    spec: exampleSpec,
  });

describe("ProjectStore", () => {
  it("publishes the version of what a write returned, and shows it before the watch does", async () => {
    apiserver.stalled = true;
    const written = await create("p1");
    const version = written.metadata.resourceVersion ?? "";
    expect(await store.observe(written)).toMatchObject({ id: "p1" });
    expect(published).toEqual([["acme", version]]);
    expect(store.list("acme").map(({ id }) => id)).toEqual(["p1"]);
    // Its own writes may have come after others that it does not know yet.
    expect(store.hasSeen(version)).toBe(false);
  });

  it("has seen a version once the watch has received it, and notifies who waits", async () => {
    const written = await create("p1");
    const version = written.metadata.resourceVersion ?? "";
    expect(await store.waitUntilSeen(version, 5_000)).toBe(true);
    expect(store.hasSeen(version)).toBe(true);
    expect(store.hasSeen(String(Number(version) + 1))).toBe(false);
    expect(await store.waitUntilSeen(String(Number(version) + 1), 20)).toBe(false);
  });

  it("publishes a deletion by a version at which it is deleted", async () => {
    const written = await store.observe(await create("p1"));
    await store.waitUntilSeen(written.resource.metadata.resourceVersion ?? "", 5_000);
    const deleted = store.waitForDeletion(written.resource, 5_000);
    await kube.delete(projectResource, { namespace: organizationNamespace("acme"), name: "p1" });
    expect(await deleted).toBe(true);
    expect(published).toHaveLength(2);
    expect(Number(published[1]?.[1])).toBeGreaterThan(Number(published[0]?.[1]));
    expect(published[1]?.[1]).toBe(String(apiserver.etcd.version));
  });
});
