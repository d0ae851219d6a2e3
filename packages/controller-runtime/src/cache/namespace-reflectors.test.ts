import { type Clock, systemClock } from "@slipway/process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeApiserver } from "../../../../test/kit/apiserver/fake-apiserver.ts";
import { eventually } from "../../../../test/kit/processes/eventually.ts";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { KubeClient } from "../client/client.ts";
import { resources } from "../client/resources.ts";
import type { KubernetesObject } from "../client/types.ts";
import { NamespaceReflectors, namesOf } from "./namespace-reflectors.ts";
import { Store } from "./store.ts";

const SECRETS = "v1/secrets";
/** The real clock, with backoffs a hundred times as short. */
const hastyClock: Clock = {
  ...systemClock,
  setTimeout: (callback, ms) => systemClock.setTimeout(callback, ms / 100),
};

let api: FakeApiserver;
let client: KubeClient;
let namespaces: Store;
let store: Store;
let requested: string[];
let abort: AbortController;
let running: Promise<void>;

const namespace = (name: string, version: number, ready = true): KubernetesObject => ({
  metadata: {
    name,
    uid: name,
    resourceVersion: String(version),
    ...(ready ? { labels: { ready: "true" } } : {}),
  },
});
const watched = () => ({
  store: namespaces,
  includes: ({ metadata }: KubernetesObject) => metadata?.labels?.ready === "true",
});
const put = (where: string, name: string) =>
  api.etcd.create(SECRETS, `${where}/${name}`, { metadata: { namespace: where, name } });
const names = () =>
  store
    .list()
    .map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`)
    .sort();

beforeEach(async () => {
  api = await FakeApiserver.start();
  requested = [];
  client = KubeClient.forUrl(api.url, { onRequest: ({ path }) => requested.push(path) });
  namespaces = new Store();
  store = new Store({ namespaces: () => namesOf(watched()) });
  abort = new AbortController();
  const options = { client, resource: resources.secrets, store, clock: hastyClock, idleTimeoutMs: 1e6 };
  running = new NamespaceReflectors(options, watched()).run(abort.signal);
});
afterEach(async () => {
  abort.abort();
  await running;
  await client.close();
  await api.stop();
});

describe("NamespaceReflectors", () => {
  it("reads in the namespaces that it is given, and never in all of them", async () => {
    put("a", "one");
    put("b", "two");
    put("other", "three");
    expect(store.hasSynced).toBe(false);
    namespaces.replace([namespace("a", 1), namespace("b", 2), namespace("other", 3, false)], "3");
    await eventually("both listed", () => store.hasSynced);
    expect(names()).toEqual(["a/one", "b/two"]);
    put("b", "four");
    await eventually("the watch", () => names().includes("b/four"));
    expect(new Set(requested)).toEqual(
      new Set(["/api/v1/namespaces/a/secrets", "/api/v1/namespaces/b/secrets"]),
    );
  });

  it("watches a namespace that appears, and forgets one that is deleted", async () => {
    namespaces.replace([namespace("a", 1)], "1");
    put("a", "one");
    put("b", "two");
    await eventually("a", () => names().length === 1);
    namespaces.upsert(namespace("b", 2, false));
    namespaces.upsert(namespace("b", 3));
    await eventually("b", () => names().length === 2);
    expect(store.hasSynced).toBe(true);
    namespaces.remove(namespace("a", 4));
    await eventually("a is forgotten", () => names().join() === "b/two");
    put("a", "late");
    put("b", "later");
    await eventually("b goes on", () => names().length === 2);
    expect(names()).toEqual(["b/later", "b/two"]);
  });
});

describe("a Store with a watch for each namespace", () => {
  const secret = (where: string, name: string, version: number): KubernetesObject => ({
    metadata: { namespace: where, name, uid: `${where}/${name}`, resourceVersion: String(version) },
  });
  const each = (known: string[]) => new Store({ namespaces: () => known, clock: new FakeClock() });

  it("is synced once each was listed, or cannot be", () => {
    const split = each(["a", "b"]);
    split.replace([], "1", { namespace: "a" });
    expect(split.hasSynced).toBe(false);
    split.skip("b");
    expect(split.hasSynced).toBe(true);
  });

  it("applies a list of one namespace to that one alone, however old it is beside another's", () => {
    const split = each(["a", "b"]);
    split.replace([secret("a", "x", 90)], "100", { namespace: "a" });
    split.replace([secret("b", "y", 5)], "50", { namespace: "b" });
    split.replace([], "60", { namespace: "b" });
    expect(split.list().map(({ metadata }) => metadata?.name)).toEqual(["x"]);
  });

  it("keeps what this process wrote though another namespace's watch is further", () => {
    const split = each(["a", "b"]);
    split.replace([], "10", { namespace: "a" });
    split.replace([], "100", { namespace: "b" });
    split.observe(secret("a", "written", 50));
    split.observe(secret("b", "deleted since", 50));
    split.observe(secret("c", "not listed", 50));
    expect(split.list().map(({ metadata }) => metadata?.name)).toEqual(["written"]);
  });
});
