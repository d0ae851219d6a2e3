import { KubeClient, Store } from "@slipway/controller-runtime";
import type { Build, Project } from "@slipway/crds";
import { silentLogger, systemClock } from "@slipway/process";
import { Registry } from "prom-client";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { exampleBuild } from "../../../test/kit/operator/builds.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { buildResource, projectResource } from "../resources.ts";
import type { BuildCluster } from "./cluster.ts";
import type { LogFollower } from "./log-follower.ts";
import { createBuildMetrics } from "./metrics.ts";
import type { BuildPod } from "./pod-state.ts";
import { buildReconciler } from "./reconciler.ts";
import { parseBuildSettings } from "./settings.ts";
import { SourceUnavailableError } from "./sources.ts";

const signal = new AbortController().signal;
const settings = parseBuildSettings(
  "{ image: builder, registry: { host: builds.example }, platformConcurrency: 1 }",
);

let api: FakeApiserver;
let client: KubeClient;
let builds: Store<Build>;
let projects: Store<Project>;
let started: string[];

beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
  [builds, projects, started] = [new Store<Build>(), new Store<Project>(), []];
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

/** A project of an organization, and a waiting build of it. */
async function request(organization: string): Promise<{ namespace: string; name: string }> {
  const namespace = `slipway-org-${organization}`;
  const { metadata: _, ...project } = exampleProject({ namespace, name: "pshop" });
  await client.create<Project>(projectResource, { ...project, metadata: { namespace, name: "pshop" } });
  const { metadata: __, ...build } = exampleBuild("b1", 1, { status: { phase: "pending" } });
  await client.create<Build>(buildResource, { ...build, metadata: { namespace, name: "b1" } });
  await new Promise((done) => setTimeout(done, 5));
  return { namespace, name: "b1" };
}

/** Builds of `alpha` cannot be started: its Git server does not answer. */
function reconciler() {
  return buildReconciler({
    client,
    clock: systemClock,
    trustedClock: systemClock,
    recorder: { event: () => {} } as never,
    stores: { builds, projects, pods: new Store<BuildPod>() },
    settings: () => settings,
    cluster: {
      podsOfProject: () => [],
      podsOfBuild: () => [],
      remove: async () => false,
      start: async ({ build }: { build: Build }) => {
        started.push(build.metadata.namespace ?? "");
        return `${build.metadata.name}-1`;
      },
    } as unknown as BuildCluster,
    openSource: async ({ metadata }) => {
      if (metadata.namespace === "slipway-org-alpha") {
        throw new SourceUnavailableError("GIT_SERVER_UNAVAILABLE", { passing: true });
      }
      return {} as never;
    },
    record: async () => undefined,
    storeLog: (async () => undefined) as never,
    follower: { follow: () => true } as unknown as LogFollower,
    metrics: createBuildMetrics(new Registry(), builds),
  });
}

// Shows: docs/builds.md#bounds: a build that cannot be started, since its Git server does not answer
test("a build that cannot be started uses no quota of the platform, and does not block the queue", async () => {
  const [first, second] = [await request("alpha"), await request("beta")];
  const all = await client.list<Build>(buildResource, {});
  builds.replace(all.items, all.metadata.resourceVersion ?? "1");
  const reconcile = reconciler();
  const context = { signal, log: silentLogger, clock: systemClock };
  await reconcile(first, context).catch(() => undefined);
  await reconcile(second, context);
  expect(started).toEqual(["slipway-org-beta"]);
});
