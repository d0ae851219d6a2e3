import {
  KubeClient,
  KubeError,
  type KubernetesObject,
  type Resource,
  resources,
  Store,
} from "@slipway/controller-runtime";
import { labels } from "@slipway/crds";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { exampleBuild } from "../../../test/kit/operator/builds.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { WaitingError } from "../reconcile-errors.ts";
import { BuildCluster, BY_BUILD, BY_CACHE } from "./cluster.ts";
import { cacheToEvict } from "./garbage-collection.ts";
import { CACHE_LABEL } from "./names.ts";
import type { BuildPod } from "./pod-state.ts";
import { parseBuildSettings } from "./settings.ts";

const { signal } = new AbortController();
const settings = parseBuildSettings("{ image: builder, registry: { host: builds.example } }");

let api: FakeApiserver;
let client: KubeClient;

beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

const cache = (organization: string, name: string, minute = 0): KubernetesObject => ({
  metadata: {
    name,
    namespace: settings.namespace,
    creationTimestamp: new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString(),
    labels: { [labels.organization]: organization, [CACHE_LABEL]: name },
  },
});
const caches = async () =>
  (
    await client.listAll<KubernetesObject>(resources.persistentVolumeClaims, {
      namespace: settings.namespace,
    })
  )
    .map(({ metadata }) => metadata?.name)
    .toSorted();

/** A cluster whose quota admits so many claims. */
function withQuota(most: number): KubeClient {
  const create = async (resource: Resource, object: KubernetesObject, options: object) => {
    if (resource === resources.persistentVolumeClaims && (await caches()).length >= most) {
      const message = `"${object.metadata?.name}" is forbidden: exceeded quota: slipway-builds, used: ${most}`;
      throw new KubeError({ status: 403, reason: "Forbidden", message });
    }
    return client.create(resource, object, options);
  };
  return new Proxy(client, {
    get: (target, key) => {
      if (key === "create") {
        return create;
      }
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

// Shows: docs/builds.md#bounds: a cache for which `builds.quota` has no room | the oldest cache of the
test("an organization whose caches fill the quota does not block others' builds", async () => {
  for (const name of ["cache-1", "cache-2", "cache-3"]) {
    await client.create(resources.persistentVolumeClaims, cache("loud", name));
  }
  const pods = new Store<BuildPod>({
    indexers: { [BY_BUILD]: () => [], [BY_CACHE]: ({ metadata }) => [metadata.labels?.[CACHE_LABEL] ?? ""] },
  });
  pods.replace(
    [{ metadata: { name: "p", labels: { [CACHE_LABEL]: "cache-1" } } } as unknown as BuildPod],
    "1",
  );
  const cluster = new BuildCluster({
    client: withQuota(3),
    stores: { builds: new Store(), projects: new Store(), pods },
    settings: () => settings,
    registryKey: () => "",
    tools: () => ({}),
  });
  const start = cluster.start(
    {
      build: exampleBuild("b1", 1),
      project: exampleProject({ namespace: "slipway-org-alpha", name: "pshop" }),
      attempt: 1,
    },
    { credential: undefined, address: {}, ca: "" } as never,
    new Date(),
    signal,
  );
  await expect(start).rejects.toThrow(WaitingError);
  // The oldest one is in use, and stays.
  expect(await caches()).toEqual(["cache-1", "cache-3"]);
});

test("the oldest cache of the organization that has most is evicted", () => {
  const all = [cache("quiet", "q1", 1), cache("loud", "l3", 3), cache("loud", "l2", 2)];
  const removed = (used: string[]) => cacheToEvict(all, (name) => used.includes(name))?.metadata?.name;
  expect(removed([])).toBe("l2");
  expect(removed(["l2"])).toBe("l3");
  expect(removed(["l2", "l3"])).toBe("q1");
  expect(removed(["l2", "l3", "q1"])).toBeUndefined();
});
