import {
  byLabel,
  createRuntimeMetrics,
  customResource,
  KubeClient,
  type KubernetesObject,
  type ObjectMeta,
  type ObjectStatus,
  Reflector,
  type Resource,
  type RuntimeMetrics,
  resources,
  Store,
} from "@slipway/controller-runtime";
import { Registry } from "prom-client";
import { FakeApiserver } from "../apiserver/fake-apiserver.ts";
import { eventually } from "../processes/eventually.ts";

/** A custom resource for tests of the runtime, which has no real one. */
export const widgets: Resource = customResource("test.dev", "v1", "widgets", "Widget");

export interface Widget extends KubernetesObject {
  metadata: ObjectMeta & { name: string };
  spec?: { size?: number; broken?: string };
  status?: ObjectStatus & { size?: number };
}

export const OWNER_LABEL = "test.dev/widget";

/** A fake apiserver with stores that follow it. */
export interface Harness {
  api: FakeApiserver;
  client: KubeClient;
  registry: Registry;
  metrics: RuntimeMetrics;
  widgets: Store<Widget>;
  configMaps: Store;
  deployments: Store;
  /** Resolves once every store has seen everything. */
  caughtUp(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts it; the objects present outlive `stop` of the stores when `api` is given. */
export async function startHarness(api?: FakeApiserver): Promise<Harness> {
  const server = api ?? (await FakeApiserver.start());
  const client = KubeClient.forUrl(server.url);
  const registry = new Registry();
  const abort = new AbortController();
  const follow = <T extends KubernetesObject>(
    resource: Resource,
  ): { store: Store<T>; run: Promise<void> } => {
    const store = new Store<T>({ indexers: { [OWNER_LABEL]: byLabel(OWNER_LABEL) } });
    return { store, run: new Reflector<T>({ client, resource, store }).run(abort.signal) };
  };
  const followed = {
    widgets: follow<Widget>(widgets),
    configMaps: follow(resources.configMaps),
    deployments: follow(resources.deployments),
  };
  const all = Object.values(followed);
  const collections = {
    widgets: "test.dev/v1/widgets",
    configMaps: "v1/configmaps",
    deployments: "apps/v1/deployments",
  };
  await eventually("stores filled", () => all.every(({ store }) => store.hasSynced));
  return {
    api: server,
    client,
    registry,
    metrics: createRuntimeMetrics(registry),
    widgets: followed.widgets.store,
    configMaps: followed.configMaps.store,
    deployments: followed.deployments.store,
    async caughtUp() {
      await eventually("stores caught up", () =>
        Object.entries(followed).every(([name, { store }]) => {
          const objects = server.etcd.collection(collections[name as keyof typeof collections]);
          return (
            store.size === objects.size &&
            [...objects].every(
              ([key, object]) =>
                store.getByKey(key)?.metadata?.resourceVersion === object.metadata.resourceVersion,
            )
          );
        }),
      );
    },
    async stop() {
      abort.abort();
      await Promise.all(all.map(({ run }) => run));
      await client.close();
      if (!api) {
        await server.stop();
      }
    },
  };
}
