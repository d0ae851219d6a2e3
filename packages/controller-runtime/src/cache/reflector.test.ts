import { type Clock, systemClock } from "@slipway/process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeApiserver } from "../../../../test/kit/apiserver/fake-apiserver.ts";
import { eventually } from "../../../../test/kit/processes/eventually.ts";
import { KubeClient } from "../client/client.ts";
import { resources } from "../client/resources.ts";
import { Reflector, type ReflectorOptions } from "./reflector.ts";
import { Store } from "./store.ts";

const CONFIG_MAPS = "v1/configmaps";

/** The real clock, with backoffs a hundred times as short. */
const hastyClock: Clock = {
  ...systemClock,
  setTimeout: (callback, ms) => systemClock.setTimeout(callback, ms / 100),
};

let api: FakeApiserver;
let client: KubeClient;
let store: Store;
let abort: AbortController;
let running: Promise<void>;
let lists: string[];
let failures: unknown[];

function put(name: string, data: Record<string, string> = {}): void {
  const key = `a/${name}`;
  const body = { metadata: { namespace: "a", name }, data };
  if (api.etcd.collection(CONFIG_MAPS).has(key)) {
    api.etcd.update(CONFIG_MAPS, key, body);
  } else {
    api.etcd.create(CONFIG_MAPS, key, body);
  }
}

function start(options: Partial<ReflectorOptions<never>> = {}): void {
  const reflector = new Reflector({
    client,
    resource: resources.configMaps,
    store,
    clock: hastyClock,
    // The idle watchdog runs on the hasty clock too: 100 s are one second.
    idleTimeoutMs: 100_000,
    events: {
      onList: ({ reason }) => lists.push(reason),
      onError: ({ error }) => failures.push(error),
    },
    ...options,
  } as ReflectorOptions<object>);
  running = reflector.run(abort.signal);
}

const names = () =>
  store
    .list()
    .map((object) => object.metadata?.name)
    .sort();

beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
  store = new Store();
  abort = new AbortController();
  lists = [];
  failures = [];
});

afterEach(async () => {
  abort.abort();
  await running;
  await client.close();
  await api.stop();
});

async function synced(): Promise<void> {
  await eventually("synced and watching", () => store.hasSynced && api.openWatches === 1);
}

describe("Reflector", () => {
  it("lists by pages, then follows the watch", async () => {
    for (let index = 0; index < 25; index += 1) {
      put(`cm-${index}`);
    }
    start({ pageSize: 10 });
    await synced();
    expect(store.size).toBe(25);
    expect(api.requests.filter(({ query }) => query.limit === "10")).toHaveLength(3);
    put("later");
    await eventually("the later one", () => store.get("a", "later"));
    api.etcd.delete(CONFIG_MAPS, "a/cm-3");
    await eventually("the deletion", () => !store.get("a", "cm-3"));
    expect(store.get("a", "later")).toMatchObject({ apiVersion: "v1", kind: "ConfigMap" });
  });

  it("has nothing but metadata of each object where that is enough, by smaller pages", async () => {
    for (let index = 0; index < 60; index += 1) {
      put(`cm-${index}`, { large: "x".repeat(1_000) });
    }
    start({ metadataOnly: true });
    await synced();
    put("later", { large: "x" });
    await eventually("the later one", () => store.get("a", "later"));
    expect(store.size).toBe(61);
    for (const object of store.list()) {
      expect(object).toEqual({ apiVersion: "v1", kind: "ConfigMap", metadata: expect.anything() });
    }
    const asked = api.requests.map(({ query, accept }) => `${query.watch ? "watch" : query.limit} ${accept}`);
    const list = "50 application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
    expect(asked).toEqual([
      list,
      list,
      "watch application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
    ]);
  });

  it("reduces each page before it requests the next one", async () => {
    for (let index = 0; index < 6; index += 1) {
      put(`cm-${index}`);
    }
    const pages: number[] = [];
    store = new Store({
      transform: (object) => {
        pages.push(api.requests.length);
        return object;
      },
    });
    start({ pageSize: 2 });
    await synced();
    expect(pages).toEqual([1, 1, 2, 2, 3, 3]);
  });

  it("requests bookmarks and a timeout of 5 to 10 minutes", async () => {
    start({ random: () => 0.5 });
    await synced();
    const watch = api.requests.find(({ query }) => query.watch === "true");
    expect(watch?.query).toMatchObject({ allowWatchBookmarks: "true", timeoutSeconds: "450" });
  });

  it("continues from the last event when the connection is cut, without a list", async () => {
    start();
    await synced();
    put("one");
    await eventually("one", () => store.get("a", "one"));
    api.cutWatches();
    put("two");
    await eventually("two", () => store.get("a", "two"));
    expect(lists).toEqual(["start"]);
  });

  it("continues from a bookmark, so that a compaction in between does no harm", async () => {
    start();
    await synced();
    for (let tick = 0; tick < 5; tick += 1) {
      api.etcd.tick();
    }
    api.etcd.compact();
    api.bookmark();
    await eventually("the bookmark", () => store.resourceVersion === String(api.etcd.version));
    api.endWatches();
    await eventually("watching again", () => api.openWatches === 1);
    put("one");
    await eventually("one", () => store.get("a", "one"));
    expect(lists).toEqual(["start"]);
  });

  it("lists again on 410, and misses neither what came nor what went", async () => {
    put("goes");
    start();
    await synced();
    api.stalled = true;
    put("comes");
    api.etcd.delete(CONFIG_MAPS, "a/goes");
    api.etcd.compact();
    api.stalled = false;
    api.cutWatches();
    await eventually("the relist", () => lists.includes("gone"));
    expect(names()).toEqual(["comes"]);
  });

  it("lists again after a line that it cannot parse, so that nothing is lost", async () => {
    start();
    await synced();
    api.stalled = true;
    put("lost");
    api.stalled = false;
    api.sendRaw('{"type":"ADDED","object":{"metadata"\n');
    await eventually("the lost one", () => store.get("a", "lost"));
    expect(lists).toEqual(["start", "unparsable"]);
  });

  it("opens the watch again when nothing is received any more", async () => {
    start({ idleTimeoutMs: 20_000 });
    await synced();
    api.stalled = true;
    put("unheard");
    api.stalled = false;
    await eventually("the unheard one", () => store.get("a", "unheard"));
    expect(lists).toEqual(["start"]);
  });

  it("sees an object recreated during a gap as deleted and added", async () => {
    put("x");
    start();
    await synced();
    const seen: string[] = [];
    store.subscribe((event) => seen.push(event.type));
    api.stalled = true;
    api.etcd.delete(CONFIG_MAPS, "a/x");
    put("x", { new: "yes" });
    api.etcd.compact();
    api.stalled = false;
    api.cutWatches();
    await eventually("the relist", () => lists.includes("gone"));
    expect(seen).toEqual(["add", "delete", "add"]);
  });

  it("never ends: not on rejections, not while the server is unavailable", async () => {
    put("one");
    api.failNext(() => true, { status: 404, times: 3 });
    api.failNext(() => true, { status: 500, times: 3 });
    start();
    await synced();
    expect(failures.length).toBeGreaterThanOrEqual(6);
    await api.down();
    put("two");
    await eventually("some failures", () => failures.length > 9);
    await api.up();
    await eventually("two", () => store.get("a", "two"));
    expect(names()).toEqual(["one", "two"]);
  });

  it("starts a paged list over when its continue token has expired", async () => {
    for (let index = 0; index < 6; index += 1) {
      put(`cm-${index}`);
    }
    api.failNext(({ query }) => query.continue !== undefined, { status: 410, reason: "Expired" });
    start({ pageSize: 2 });
    await synced();
    expect(store.size).toBe(6);
  });

  it("keeps an apiVersion and kind on listed objects", async () => {
    put("one");
    start();
    await synced();
    expect(store.get("a", "one")).toMatchObject({ apiVersion: "v1", kind: "ConfigMap" });
  });

  it("keeps going when a subscriber throws", async () => {
    store.subscribe(() => {
      throw new Error("handler");
    });
    start();
    await synced();
    put("one");
    put("two");
    await eventually("both", () => store.size === 2);
    expect(lists).toEqual(["start"]);
  });

  it("ends when its signal aborts", async () => {
    start();
    await synced();
    abort.abort();
    await running;
    await eventually("no watch", () => api.openWatches === 0);
  });
});
