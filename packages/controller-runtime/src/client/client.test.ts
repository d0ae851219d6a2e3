import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeApiserver } from "../../../../test/kit/apiserver/fake-apiserver.ts";
import { TcpProxy } from "../../../../test/kit/processes/tcp-proxy.ts";
import { KubeClient } from "./client.ts";
import { isAlreadyExists, isConflict, isNetworkError, isNotFound, KubeError } from "./errors.ts";
import { collectionPath, objectPath, queryString } from "./http-request.ts";
import { resources } from "./resources.ts";
import type { RequestObservation } from "./transport.ts";
import type { KubernetesObject } from "./types.ts";

interface ConfigMap extends KubernetesObject {
  data?: Record<string, string>;
}

const REF = { namespace: "a", name: "x" };
const X: ConfigMap = { metadata: REF, data: { k: "v" } };

let api: FakeApiserver;
let client: KubeClient;
let observed: RequestObservation[];

beforeEach(async () => {
  api = await FakeApiserver.start();
  observed = [];
  client = KubeClient.forUrl(api.url, { onRequest: (observation) => observed.push(observation) });
});

afterEach(async () => {
  await client.close();
  await api.stop();
});

const rejected = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

describe("a KubeClient before a silent apiserver", () => {
  it("counts the wait for a connection, and ends with its caller", async () => {
    const proxy = new TcpProxy({ host: "127.0.0.1", port: Number(new URL(api.url).port) });
    await proxy.up();
    proxy.stall(true);
    const url = `http://127.0.0.1:${proxy.port}`;
    const silent = KubeClient.forUrl(url, { timeoutMs: 500, connections: 1 });
    const get = (kube: KubeClient) => rejected(kube.get(resources.configMaps, REF));
    try {
      const started = performance.now();
      for (const error of await Promise.all(Array.from({ length: 5 }, () => get(silent)))) {
        expect(error).toMatchObject({ status: 0, reason: "Timeout" });
      }
      expect(performance.now() - started).toBeLessThan(1_500);
      const over = new KubeError({ status: 0, reason: "Timeout", message: "over" });
      const abort = new AbortController();
      const late = get(silent.until(abort.signal));
      abort.abort(over);
      expect(await late).toBe(over);
    } finally {
      await silent.close();
      await proxy.down();
    }
  });
});

describe("KubeClient", () => {
  it("reuses its connections for requests one after the other, deletions with their options too", async () => {
    let connections = 0;
    const count = () => {
      connections += 1;
    };
    subscribe("undici:client:connected", count);
    try {
      for (let round = 0; round < 5; round += 1) {
        await client.create(resources.configMaps, X);
        await client.delete(resources.configMaps, REF);
        await client.delete(resources.configMaps, REF);
      }
    } finally {
      unsubscribe("undici:client:connected", count);
    }
    // The next request may begin a moment before the connection of the last is free.
    expect(connections).toBeLessThanOrEqual(2);
  });

  it("creates, reads, patches, replaces and deletes", async () => {
    const created = await client.create(resources.configMaps, X);
    expect(created).toMatchObject({ apiVersion: "v1", kind: "ConfigMap" });
    await client.patch(resources.configMaps, REF, { data: { more: "1" } });
    const patched = await client.get<ConfigMap>(resources.configMaps, REF);
    expect(patched.data).toEqual({ k: "v", more: "1" });
    await client.replace(resources.configMaps, { ...patched, data: {} });
    expect((await client.get<ConfigMap>(resources.configMaps, REF)).data).toEqual({});
    expect(await client.delete(resources.configMaps, REF)).toBe(true);
    expect(await client.delete(resources.configMaps, REF)).toBe(false);
    expect(await client.getOrUndefined(resources.configMaps, REF)).toBeUndefined();
  });

  it("gives typed errors", async () => {
    expect(isNotFound(await rejected(client.get(resources.configMaps, REF)))).toBe(true);
    const created = await client.create(resources.configMaps, X);
    expect(isAlreadyExists(await rejected(client.create(resources.configMaps, X)))).toBe(true);
    await client.patch(resources.configMaps, REF, { data: { k: "w" } });
    const conflict = await rejected(client.replace(resources.configMaps, created));
    expect(isConflict(conflict)).toBe(true);
    expect(conflict).toMatchObject({ status: 409, reason: "Conflict" });
    const uid = await rejected(client.delete(resources.configMaps, REF, { uid: "another" }));
    expect(isConflict(uid)).toBe(true);
  });

  it("applies in the name of a field manager, by force", async () => {
    await client.apply(resources.configMaps, X, { fieldManager: "me" });
    const applied = await client.apply<ConfigMap>(
      resources.configMaps,
      { metadata: REF, data: { other: "1" } },
      { fieldManager: "me" },
    );
    expect(applied.data).toEqual({ other: "1" });
    expect(api.requests.at(-1)?.query).toEqual({ fieldManager: "me", force: "true" });
  });

  it("writes only the status through the subresource", async () => {
    const created = await client.create(resources.configMaps, X);
    await client.updateStatus(resources.configMaps, {
      ...created,
      data: {},
      status: { ok: true },
    } as ConfigMap);
    expect(await client.get(resources.configMaps, REF)).toMatchObject({
      data: { k: "v" },
      status: { ok: true },
    });
  });

  it("reads the metadata of nothing, which the apiserver lists as null", async () => {
    expect(await client.listAll(resources.configMaps, { namespace: "empty", metadataOnly: true })).toEqual(
      [],
    );
  });

  it("reads every page of a list and fills in the type", async () => {
    for (const name of ["x", "y", "z"]) {
      await client.create(resources.configMaps, { metadata: { ...REF, name } });
    }
    const all = await client.listAll(resources.configMaps, { limit: 2 });
    expect(all.map((item) => [item.kind, item.metadata?.name])).toEqual([
      ["ConfigMap", "x"],
      ["ConfigMap", "y"],
      ["ConfigMap", "z"],
    ]);
  });

  it("waits as the server asks when it is overloaded, three times at most", async () => {
    const busy = { status: 429, reason: "TooManyRequests", retryAfter: 0 };
    api.failNext(() => true, { ...busy, times: 3 });
    await client.create(resources.configMaps, X);
    api.failNext(() => true, { ...busy, times: 4 });
    expect(await rejected(client.get(resources.configMaps, REF))).toMatchObject({ status: 429 });
  });

  it("tries once more after a 401, with fresh credentials", async () => {
    api.failNext(() => true, { status: 401, reason: "Unauthorized" });
    await client.create(resources.configMaps, X);
    api.failNext(() => true, { status: 401, reason: "Unauthorized", times: 2 });
    expect(await rejected(client.get(resources.configMaps, REF))).toMatchObject({ status: 401 });
  });

  it("distinguishes a network failure from an answer", async () => {
    await api.down();
    const error = await rejected(client.get(resources.configMaps, REF));
    expect(isNetworkError(error)).toBe(true);
    expect(error).toMatchObject({ code: "ECONNREFUSED", reason: "NetworkError" });
  });

  it("gives the caller's own reason when the caller aborts", async () => {
    const abort = new AbortController();
    const reading = rejected(client.get(resources.configMaps, REF, { signal: abort.signal }));
    abort.abort(new Error("enough"));
    const error = await reading;
    expect(error).toMatchObject({ message: "enough" });
    expect(error).not.toBeInstanceOf(KubeError);
  });

  it("reports every request with verb, status and duration", async () => {
    await client.create(resources.configMaps, X);
    await rejected(client.get(resources.configMaps, { ...REF, name: "none" }));
    expect(observed.map(({ verb, status }) => [verb, status])).toEqual([
      ["post", 200],
      ["get", 404],
    ]);
  });

  it("never puts a body into an error message", async () => {
    const secret = { metadata: REF, stringData: { password: "hunter2" } } as KubernetesObject;
    await client.create(resources.secrets, secret);
    const error = (await rejected(client.create(resources.secrets, secret))) as Error;
    expect(JSON.stringify([error.message, error])).not.toContain("hunter2");
  });
});

describe("paths", () => {
  it("places core, grouped, namespaced and cluster-scoped resources", () => {
    expect(collectionPath(resources.pods, "a")).toBe("/api/v1/namespaces/a/pods");
    expect(collectionPath(resources.pods)).toBe("/api/v1/pods");
    expect(objectPath(resources.deployments, REF, "status")).toBe(
      "/apis/apps/v1/namespaces/a/deployments/x/status",
    );
    expect(objectPath(resources.namespaces, { name: "a" })).toBe("/api/v1/namespaces/a");
  });

  it("refuses what would address something else", () => {
    expect(() => objectPath(resources.pods, { name: "x" })).toThrow(TypeError);
    expect(() => objectPath(resources.pods, { namespace: "a", name: "" })).toThrow(TypeError);
    expect(() => objectPath(resources.pods, { namespace: "a", name: ".." })).toThrow(TypeError);
    expect(() => collectionPath(resources.namespaces, "a")).toThrow(TypeError);
    expect(objectPath(resources.pods, { namespace: "a", name: "../b" })).toBe(
      "/api/v1/namespaces/a/pods/..%2Fb",
    );
  });

  it("leaves empty parameters out", () => {
    expect(queryString({ a: 1, b: undefined, c: "", d: "x y" })).toBe("?a=1&d=x%20y");
    expect(queryString({})).toBe("");
  });
});
