import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startApiserver, type TestApiserver } from "../../../../hack/cluster/apiserver.ts";
import { eventually } from "../../../../test/kit/processes/eventually.ts";
import { TcpProxy } from "../../../../test/kit/processes/tcp-proxy.ts";
import { Reflector, type ReflectorOptions } from "../cache/reflector.ts";
import { Store } from "../cache/store.ts";
import { KubeClient } from "./client.ts";
import { isAlreadyExists, isConflict, isInvalid, isNamespaceTerminating, isNotFound } from "./errors.ts";
import { loadKubeConfig } from "./kube-config.ts";
import { resources } from "./resources.ts";
import type { KubernetesObject } from "./types.ts";

interface ConfigMap extends KubernetesObject {
  data?: Record<string, string>;
}

let api: TestApiserver;
let direct: KubeClient;
let namespace: string;
let counter = 0;

beforeAll(async () => {
  api = await startApiserver();
  direct = KubeClient.fromConfig(loadKubeConfig({ file: api.kubeconfig }));
});

afterAll(async () => {
  await direct.close();
  await api.stop();
});

beforeEach(async () => {
  counter += 1;
  namespace = `test-${counter}`;
  await direct.create(resources.namespaces, { metadata: { name: namespace } });
});

const configMap = (name: string, data: Record<string, string> = {}): ConfigMap => ({
  metadata: { namespace, name, labels: { test: "yes" } },
  data,
});
const put = (name: string, data?: Record<string, string>) =>
  direct.apply<ConfigMap>(resources.configMaps, configMap(name, data), { fieldManager: "test" });
const remove = (name: string) => direct.delete(resources.configMaps, { namespace, name });

describe("Reflector against a real apiserver", () => {
  let proxy: TcpProxy;
  let client: KubeClient;
  let store: Store<ConfigMap>;
  let abort: AbortController;
  let running: Promise<void>;
  let lists: string[];
  let watchEnds: string[];

  beforeEach(async () => {
    const url = new URL(api.url);
    proxy = new TcpProxy({ host: url.hostname, port: Number(url.port) });
    await proxy.up();
    const config = loadKubeConfig({ file: api.kubeconfig });
    const cluster = config.getCurrentCluster();
    if (!cluster) {
      throw new Error("no cluster");
    }
    config.loadFromClusterAndUser(
      { ...cluster, server: `https://127.0.0.1:${proxy.port}` },
      config.getCurrentUser() ?? { name: "none" },
    );
    client = KubeClient.fromConfig(config, { timeoutMs: 3_000 });
    store = new Store();
    abort = new AbortController();
    lists = [];
    watchEnds = [];
    running = Promise.resolve();
  });

  afterEach(async () => {
    abort.abort();
    await running;
    await client.close();
    await proxy.down();
  });

  async function start(options: Partial<ReflectorOptions<ConfigMap>> = {}): Promise<void> {
    const reflector = new Reflector<ConfigMap>({
      client,
      resource: resources.configMaps,
      store,
      namespace,
      events: {
        onList: ({ reason }) => lists.push(reason),
        onWatchEnd: ({ reason }) => watchEnds.push(reason),
      },
      ...options,
    });
    running = reflector.run(abort.signal);
    await eventually("synced", () => store.hasSynced);
  }

  const sees = (name: string) => eventually(`${name} seen`, () => store.get(namespace, name), 90_000);

  it("lists by pages and follows", async () => {
    await Promise.all(Array.from({ length: 130 }, (_, index) => put(`cm-${index}`)));
    await start({ pageSize: 50 });
    expect(store.size).toBe(130);
    expect(store.get(namespace, "cm-1")).toMatchObject({ kind: "ConfigMap", apiVersion: "v1" });
    expect(store.get(namespace, "cm-1")?.metadata).not.toHaveProperty("managedFields");
    await put("later");
    expect(await sees("later")).toMatchObject({ kind: "ConfigMap" });
    await remove("cm-7");
    await eventually("cm-7 gone", () => !store.get(namespace, "cm-7"));
  });

  it("lists and follows metadata alone", async () => {
    await put("before", { secret: "a" });
    await start({ metadataOnly: true });
    await put("later", { secret: "b" });
    for (const name of ["before", "later"]) {
      expect(await sees(name)).toEqual({
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: expect.objectContaining({ name, namespace, labels: { test: "yes" } }),
      });
    }
    const one = await client.get(resources.configMaps, { namespace, name: "later" }, { metadataOnly: true });
    expect(one).toMatchObject({ kind: "ConfigMap", metadata: { name: "later" } });
    expect(one).not.toHaveProperty("data");
  });

  it("lets a writer read its own write", async () => {
    await start();
    for (let index = 0; index < 20; index += 1) {
      const written = await put(`own-${index}`);
      const version = written.metadata?.resourceVersion ?? "";
      expect(await store.waitForResourceVersion(version, { timeoutMs: 5_000 })).toBe(true);
      expect(store.get(namespace, `own-${index}`)).toBeDefined();
    }
  });

  it("gets bookmarks, so that what it does not select does not age it", async () => {
    await start({ watchTimeoutMs: [5_000, 5_000], labelSelector: "test=no" });
    let turn = 0;
    // What happened just before a watch was opened is in none of its bookmarks, so it happens again and again.
    await eventually(
      "a bookmark",
      async () => {
        turn += 1;
        const other = await put("unselected", { turn: String(turn) });
        return store.waitForResourceVersion(other.metadata?.resourceVersion ?? "", { timeoutMs: 7_000 });
      },
      45_000,
    );
    expect(store.size).toBe(0);
    expect(lists).toEqual(["start"]);
  });

  it("continues when its connections are cut", async () => {
    await start();
    for (let round = 0; round < 3; round += 1) {
      proxy.cut();
      await put(`after-${round}`);
      await sees(`after-${round}`);
    }
    expect(lists).toEqual(["start"]);
  });

  it("notices a connection on which nothing comes any more", async () => {
    await start({ idleTimeoutMs: 1_000 });
    proxy.stall(true);
    await put("unheard");
    await eventually("the watchdog", () => watchEnds.includes("idle"), 10_000);
    proxy.cut();
    proxy.stall(false);
    await sees("unheard");
  });

  it("survives a killed and restarted apiserver", async () => {
    await put("before");
    await start();
    await api.kill();
    await api.restart();
    await put("after");
    await sees("after");
    await remove("before");
    await eventually("before gone", () => !store.get(namespace, "before"), 90_000);
  });

  it("lists again on 410, and misses nothing", async () => {
    await put("goes");
    await put("again", { uid: "first" });
    await start();
    const events: string[] = [];
    store.subscribe(({ type, key }) => events.push(`${type} ${key.split("/")[1]}`));
    await proxy.down();
    await remove("goes");
    await remove("again");
    await put("again", { uid: "second" });
    await put("comes");
    // A new apiserver's watch cache begins now: what the reflector knows is too old for it.
    await api.restart();
    await proxy.up();
    await sees("comes");
    expect(lists).toContain("gone");
    expect(store.get(namespace, "goes")).toBeUndefined();
    expect(store.get(namespace, "again")?.data).toEqual({ uid: "second" });
    expect(events.filter((event) => event.endsWith(" again"))).toEqual([
      "add again",
      "delete again",
      "add again",
    ]);
  });

  it("sees a recreated object as deleted and added", async () => {
    await put("x");
    await start();
    const events: string[] = [];
    store.subscribe(({ type }) => events.push(type));
    await remove("x");
    const second = await put("x");
    await store.waitForResourceVersion(second.metadata?.resourceVersion ?? "", { timeoutMs: 5_000 });
    expect(events.filter((type) => type !== "update")).toEqual(["add", "delete", "add"]);
  });
});

describe("KubeClient against a real apiserver", () => {
  const ref = () => ({ namespace, name: "x" });
  const rejected = (promise: Promise<unknown>) =>
    promise.then(
      () => undefined,
      (error: unknown) => error,
    );

  it("maps refusals to typed errors", async () => {
    expect(isNotFound(await rejected(direct.get(resources.configMaps, ref())))).toBe(true);
    await direct.create(resources.configMaps, configMap("x"));
    expect(isAlreadyExists(await rejected(direct.create(resources.configMaps, configMap("x"))))).toBe(true);
    const old = await direct.get<ConfigMap>(resources.configMaps, ref());
    await put("x", { changed: "yes" });
    expect(isConflict(await rejected(direct.replace(resources.configMaps, old)))).toBe(true);
    const service = { metadata: { namespace, name: "s" }, spec: { ports: [{ port: 99_999 }] } };
    expect(isInvalid(await rejected(direct.create(resources.services, service as KubernetesObject)))).toBe(
      true,
    );
  });

  it("deletes only the object that it means", async () => {
    await put("x");
    expect(isConflict(await rejected(direct.delete(resources.configMaps, ref(), { uid: "another" })))).toBe(
      true,
    );
    const { metadata } = await direct.get<ConfigMap>(resources.configMaps, ref());
    expect(await direct.delete(resources.configMaps, ref(), { uid: metadata?.uid })).toBe(true);
    expect(await direct.delete(resources.configMaps, ref())).toBe(false);
  });

  it("applies by force and drops what is no longer applied", async () => {
    await direct.create(resources.configMaps, configMap("x", { a: "theirs" }));
    await put("x", { a: "mine", b: "mine" });
    const applied = await put("x", { a: "mine" });
    expect(applied.data).toEqual({ a: "mine" });
  });

  it("recognizes a namespace that is being deleted", async () => {
    await direct.delete(resources.namespaces, { name: namespace });
    expect(isNamespaceTerminating(await rejected(put("x")))).toBe(true);
  });

  it("patches conditionally", async () => {
    const { metadata } = await put("x");
    await direct.patch(resources.configMaps, ref(), {
      metadata: { resourceVersion: metadata?.resourceVersion },
      data: { a: "1" },
    });
    const again = direct.patch(resources.configMaps, ref(), {
      metadata: { resourceVersion: metadata?.resourceVersion },
      data: { a: "2" },
    });
    expect(isConflict(await rejected(again))).toBe(true);
  });

  it("reads any other path as text", async () => {
    expect(await direct.text({ method: "GET", path: "/readyz" })).toBe("ok");
  });
});

describe("A ResourceQuota that others write at the same time", () => {
  it("refuses no creation that it has room for", async () => {
    const hard = { "count/configmaps": "1000" };
    const quota = { namespace, name: "room" };
    await direct.create(resources.resourceQuotas, { metadata: quota, spec: { hard } } as KubernetesObject);
    const counted = { status: { hard, used: { "count/configmaps": "0" } } };
    await direct.patch(resources.resourceQuotas, quota, counted, { subresource: "status" });

    // For a second, which is far longer than the quota controller and other apiservers take.
    const end = performance.now() + 1_000;
    const write = async (writer: number) => {
      for (let time = 0; performance.now() < end; time += 1) {
        const annotations = { [`writer-${writer}`]: String(time) };
        await direct.patch(resources.resourceQuotas, quota, { metadata: { annotations } });
      }
    };
    const writers = Array.from({ length: 8 }, (_, writer) => write(writer));
    const creations = Array.from({ length: 40 }, (_, index) =>
      direct.create(resources.configMaps, configMap(`of-quota-${index}`)),
    );
    const results = await Promise.allSettled(creations);
    await Promise.all(writers);
    expect(
      results.flatMap((result) => (result.status === "rejected" ? [String(result.reason)] : [])),
    ).toEqual([]);
  });
});
