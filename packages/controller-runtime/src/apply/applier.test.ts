import { silentLogger } from "@slipway/process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeApiserver } from "../../../../test/kit/apiserver/fake-apiserver.ts";
import { type FakeEtcd, FakeRefusal } from "../../../../test/kit/apiserver/fake-store.ts";
import { type Harness, OWNER_LABEL, startHarness } from "../../../../test/kit/runtime/harness.ts";
import { isConflict } from "../client/errors.ts";
import { resources } from "../client/resources.ts";
import type { KubernetesObject } from "../client/types.ts";
import { Applier } from "./applier.ts";
import type { Owner } from "./desired-object.ts";

const CONTEXT = { log: silentLogger };
const CONFIG_MAPS = "v1/configmaps";
const OWNER: Owner = {
  label: { key: OWNER_LABEL, value: "w" },
  namespace: "a",
  reference: { apiVersion: "test.dev/v1", kind: "Widget", name: "w", uid: "uid-w", controller: true },
};

const configMap = (name: string, data: Record<string, string> = { k: "v" }) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { namespace: "a", name },
  data,
});
const deployment = (image: string) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { namespace: "a", name: "w" },
  spec: { template: { spec: { containers: [{ name: "app", image, env: [] }] } } },
});

let api: FakeApiserver;
let harness: Harness;
let applier: Applier;

function newApplier(propagationMs?: number, rarelyChanges = true): Applier {
  return new Applier({
    client: harness.client,
    fieldManager: "test",
    annotationPrefix: "test.dev",
    metrics: harness.metrics,
    kinds: [
      { resource: resources.configMaps, store: harness.configMaps, propagationMs, rarelyChanges },
      { resource: resources.deployments, store: harness.deployments, rarelyChanges },
    ],
  });
}

beforeEach(async () => {
  api = await FakeApiserver.start();
  harness = await startHarness(api);
  applier = newApplier();
});

afterEach(async () => {
  await harness.stop();
  await api.stop();
});

/** Applies, and says how many writes that took. */
async function writesOf(...desired: KubernetesObject[]): Promise<number> {
  const before = api.requests.length;
  await applier.applyAndPrune(OWNER, desired, CONTEXT);
  return api.writes(before).length;
}

/** Writes of the first change of a child that was created: its fields are made applied ones, and then it is applied. */
const FIRST_CHANGE = 2;

const live = (key: string) => api.etcd.collection(CONFIG_MAPS).get(key);

describe("applyAndPrune", () => {
  it("does not undo what was changed after an object was read, where that is somebody else's", async () => {
    await applier.applyAndPrune(OWNER, [configMap("x"), configMap("y")], CONTEXT);
    const behind = harness.configMaps.get.bind(harness.configMaps);
    const read = { x: behind("a", "x"), y: behind("a", "y") };
    for (const name of ["x", "y"]) {
      await harness.client.patch(resources.configMaps, { namespace: "a", name }, { data: { k: "scaled" } });
    }
    harness.configMaps.get = (namespace, name) => read[name as "x" | "y"] ?? behind(namespace, name);
    const onlyAsRead = ({ metadata }: KubernetesObject) => metadata?.name === "x";
    const apply = (name: string) =>
      applier.applyAndPrune(OWNER, [configMap(name, { k: "stale" })], { ...CONTEXT, onlyAsRead, prune: [] });
    await expect(apply("x")).rejects.toSatisfy(isConflict);
    await apply("y");
    expect([live("a/x")?.data, live("a/y")?.data]).toEqual([{ k: "scaled" }, { k: "stale" }]);
  });

  it("creates with label, owner reference and marks", async () => {
    await applier.applyAndPrune(OWNER, [configMap("x")], CONTEXT);
    expect(live("a/x")?.metadata).toMatchObject({
      labels: { [OWNER_LABEL]: "w" },
      ownerReferences: [OWNER.reference],
      annotations: {
        "test.dev/applied-by": "test",
        "test.dev/applied-hash": expect.stringMatching(/^[0-9a-f]{32}$/),
      },
    });
  });

  it("writes nothing when all is as desired: immediately, later, and after a restart", async () => {
    const desired = [configMap("x"), configMap("y"), deployment("one")];
    expect(await writesOf(...desired)).toBe(3);
    expect(await writesOf(...desired)).toBe(0);
    await harness.caughtUp();
    expect(await writesOf(...desired)).toBe(0);
    await harness.stop();
    harness = await startHarness(api);
    applier = newApplier();
    expect(await writesOf(...desired)).toBe(0);
  });

  it("sends what changed, and nothing else", async () => {
    await writesOf(configMap("x"), deployment("one"));
    expect(await writesOf(configMap("x"), deployment("two"))).toBe(FIRST_CHANGE);
    expect(await writesOf(configMap("x"), deployment("two"))).toBe(0);
    expect(await writesOf(configMap("x"), deployment("three"))).toBe(1);
  });

  it("removes a field that is no longer desired", async () => {
    await writesOf(configMap("x", { k: "v", gone: "soon" }));
    await writesOf(configMap("x", { k: "v" }));
    expect(live("a/x")?.data).toEqual({ k: "v" });
  });

  it("creates without reading first, and marks what it created until the first change", async () => {
    const before = api.requests.length;
    await writesOf(configMap("x"));
    const reads = api.requests.slice(before).filter(({ path }) => path.endsWith("/configmaps/x"));
    expect([reads, api.writes(before).map(({ method }) => method)]).toEqual([[], ["POST"]]);
    expect(live("a/x")?.metadata.annotations).toHaveProperty(["test.dev/created-by"], "test");
    await writesOf(configMap("x", { k: "w" }));
    expect(live("a/x")?.metadata.annotations).not.toHaveProperty(["test.dev/created-by"]);
  });

  it("applies from the start what is not said to change rarely", async () => {
    applier = newApplier(undefined, false);
    await writesOf(deployment("one"));
    expect(await writesOf(deployment("two"))).toBe(1);
  });

  it("applies once more when it was killed after the fields were made applied ones", async () => {
    await writesOf(configMap("x", { k: "v", gone: "soon" }));
    api.etcd.apply = () => {
      throw new FakeRefusal(500, "InternalError", "killed");
    };
    await expect(writesOf(configMap("x"))).rejects.toThrow("killed");
    delete (api.etcd as Partial<FakeEtcd>).apply;
    await harness.caughtUp();
    expect(await writesOf(configMap("x"))).toBe(1);
    expect(live("a/x")?.data).toEqual({ k: "v" });
  });

  it("restores what was edited manually, and leaves what others added", async () => {
    await writesOf(configMap("x"));
    api.etcd.patch(CONFIG_MAPS, "a/x", { data: { k: "edited", other: "kept" } });
    await harness.caughtUp();
    expect(await writesOf(configMap("x"))).toBe(FIRST_CHANGE);
    expect(live("a/x")?.data).toEqual({ k: "v", other: "kept" });
    await harness.caughtUp();
    expect(await writesOf(configMap("x"))).toBe(0);
  });

  it("restores what was deleted manually", async () => {
    await writesOf(configMap("x"));
    api.etcd.delete(CONFIG_MAPS, "a/x");
    await harness.caughtUp();
    expect(await writesOf(configMap("x"))).toBe(1);
    expect(live("a/x")).toBeDefined();
  });

  it("restores a lost label, owner reference and hash", async () => {
    await writesOf(configMap("x"));
    api.etcd.patch(CONFIG_MAPS, "a/x", { metadata: { labels: null, annotations: null } });
    await harness.caughtUp();
    expect(await writesOf(configMap("x"))).toBe(1);
    expect(live("a/x")?.metadata.labels).toEqual({ [OWNER_LABEL]: "w" });
  });

  it("applies once more when a spec changed where a comparison cannot see it", async () => {
    await writesOf(deployment("one"));
    await harness.caughtUp();
    api.etcd.patch("apps/v1/deployments", "a/w", { spec: { added: true } });
    await harness.caughtUp();
    expect(await writesOf(deployment("one"))).toBe(FIRST_CHANGE);
    expect(await writesOf(deployment("one"))).toBe(0);
  });

  it("does not send again and again what the apiserver keeps otherwise", async () => {
    // A controller or a webhook that insists on its own value, as far as this client can see.
    const insist = () => api.etcd.patch(CONFIG_MAPS, "a/x", { data: { k: "insisted" } });
    await writesOf(configMap("x"));
    insist();
    await harness.caughtUp();
    const apply = api.etcd.apply.bind(api.etcd);
    api.etcd.apply = (...args) => {
      apply(...args);
      return insist();
    };
    expect(await writesOf(configMap("x"))).toBe(FIRST_CHANGE);
    await harness.caughtUp();
    expect(await writesOf(configMap("x"))).toBe(0);
  });

  it("prunes children that are no longer desired, and nothing else", async () => {
    await writesOf(configMap("x"), configMap("y"));
    const foreign = { ...configMap("foreign"), metadata: { namespace: "a", name: "foreign" } };
    const labels = { [OWNER_LABEL]: "w" };
    api.etcd.create(CONFIG_MAPS, "a/labelled", {
      ...foreign,
      metadata: { namespace: "a", name: "labelled", labels },
    });
    api.etcd.create(CONFIG_MAPS, "b/x", {
      ...foreign,
      metadata: {
        ...live("a/x")?.metadata,
        namespace: "b",
        name: "x",
        uid: undefined,
        resourceVersion: undefined,
      },
    });
    api.etcd.create(CONFIG_MAPS, "a/copied", {
      ...foreign,
      metadata: {
        ...live("a/x")?.metadata,
        name: "copied",
        ownerReferences: [{ apiVersion: "v1", kind: "Other", name: "o", uid: "uid-o", controller: true }],
      },
    });
    await harness.caughtUp();
    const result = await applier.applyAndPrune(OWNER, [configMap("x")], CONTEXT);
    expect(result.pruned).toEqual([{ namespace: "a", name: "y" }]);
    expect([...api.etcd.collection(CONFIG_MAPS).keys()].sort()).toEqual([
      "a/copied",
      "a/labelled",
      "a/x",
      "b/x",
    ]);
  });

  it("reads live before it prunes: a namesake made since is spared", async () => {
    await writesOf(configMap("x"));
    await harness.caughtUp();
    api.stalled = true;
    api.etcd.delete(CONFIG_MAPS, "a/x");
    api.etcd.create(CONFIG_MAPS, "a/x", configMap("x"));
    const result = await applier.applyAndPrune(OWNER, [], CONTEXT);
    expect(result.pruned).toEqual([]);
    expect(live("a/x")).toBeDefined();
    expect(api.requests.filter(({ method }) => method === "DELETE")).toEqual([]);
  });

  it("never adopts an object of another owner", async () => {
    api.etcd.create(CONFIG_MAPS, "a/x", configMap("x", { theirs: "yes" }));
    const attempt = applier.applyAndPrune(OWNER, [configMap("x")], CONTEXT);
    await expect(attempt).rejects.toMatchObject({ name: "RetryableError", reason: "ChildConflict" });
    expect(live("a/x")?.data).toEqual({ theirs: "yes" });
    await applier.applyAndPrune(OWNER, [configMap("x")], { ...CONTEXT, adopt: true });
    expect(live("a/x")?.data).toEqual({ theirs: "yes", k: "v" });
  });

  it("waits for a former child that is still being deleted, and applies the rest", async () => {
    await writesOf(configMap("x"));
    api.etcd.patch(CONFIG_MAPS, "a/x", { metadata: { finalizers: ["test.dev/hold"] } });
    api.etcd.delete(CONFIG_MAPS, "a/x");
    await harness.caughtUp();
    const attempt = applier.applyAndPrune(OWNER, [configMap("x"), configMap("y")], CONTEXT);
    await expect(attempt).rejects.toMatchObject({ name: "WaitingError", reason: "ChildTerminating" });
    expect(live("a/y")).toBeDefined();
  });

  it("refuses a kind that it has no store for", async () => {
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { namespace: "a", name: "s" } };
    await expect(applier.applyAndPrune(OWNER, [secret], CONTEXT)).rejects.toThrow("no store for v1 Secret");
  });

  it("counts what it did", async () => {
    await writesOf(configMap("x"), configMap("y"));
    await writesOf(configMap("x"));
    const text = await harness.registry.metrics();
    const count = (result: string) =>
      text.match(
        new RegExp(`controller_runtime_apply_objects_total{.*kind="ConfigMap",result="${result}"} (\\d+)`),
      )?.[1];
    expect([count("applied"), count("unchanged"), count("pruned")]).toEqual(["2", "1", "1"]);
  });
});

describe("a kind that others learn of late", () => {
  const SETTLE_MS = 400;
  const timed = async (...desired: KubernetesObject[]) => {
    const start = performance.now();
    await applier.applyAndPrune(OWNER, desired, CONTEXT);
    return performance.now() - start;
  };
  beforeEach(() => {
    applier = newApplier(SETTLE_MS);
  });

  it("settles before live objects that follow it are changed", async () => {
    await timed(deployment("one"));
    expect(await timed(configMap("x"), deployment("two"))).toBeGreaterThan(SETTLE_MS - 1);
  });

  it("outlives for as long what named it", async () => {
    await timed(configMap("x"), deployment("one"));
    await harness.caughtUp();
    expect(await timed(deployment("two"))).toBeGreaterThan(SETTLE_MS - 1);
    expect(live("a/x")).toBeUndefined();
  });

  it("delays nothing when all is new, unchanged or being deleted", async () => {
    const both = [configMap("x"), deployment("one")];
    expect(await timed(...both)).toBeLessThan(SETTLE_MS);
    expect(await timed(configMap("x", { k: "w" }), deployment("two"))).toBeLessThan(SETTLE_MS);
    await harness.caughtUp();
    expect(await timed(deployment("two"))).toBeLessThan(SETTLE_MS);
    expect(live("a/x")).toBeUndefined();
  });

  it("stops waiting when the reconcile is aborted", async () => {
    await timed(deployment("one"));
    const context = { ...CONTEXT, signal: AbortSignal.timeout(50) };
    const attempt = applier.applyAndPrune(OWNER, [configMap("x"), deployment("two")], context);
    await expect(attempt).rejects.toThrow(DOMException);
    expect(await writesOf(configMap("x"), deployment("two"))).toBe(FIRST_CHANGE);
  });
});

describe("removeAll", () => {
  it("deletes every child and says what still exists", async () => {
    await writesOf(configMap("x"), deployment("one"));
    api.etcd.patch(CONFIG_MAPS, "a/x", { metadata: { finalizers: ["test.dev/hold"] } });
    expect(await applier.removeAll(OWNER, CONTEXT)).toHaveLength(2);
    expect((await applier.removeAll(OWNER, CONTEXT)).map(({ ref }) => ref.name)).toEqual(["x"]);
    api.etcd.patch(CONFIG_MAPS, "a/x", { metadata: { finalizers: [] } });
    expect(await applier.removeAll(OWNER, CONTEXT)).toEqual([]);
  });

  it("sees children that the store has not seen yet", async () => {
    await harness.caughtUp();
    api.stalled = true;
    await writesOf(configMap("x"));
    const other = await startHarness(api);
    try {
      const second = new Applier({
        client: other.client,
        fieldManager: "test",
        annotationPrefix: "test.dev",
        metrics: other.metrics,
        kinds: [{ resource: resources.configMaps, store: harness.deployments }],
      });
      expect(await second.removeAll(OWNER, CONTEXT)).toHaveLength(1);
      expect(live("a/x")).toBeUndefined();
    } finally {
      await other.stop();
    }
  });
});
