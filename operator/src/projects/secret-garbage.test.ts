import { byLabel, KubeClient, type KubernetesObject, resources, Store } from "@slipway/controller-runtime";
import type { Deployment, Project } from "@slipway/crds";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { exampleJob, exampleProject } from "../../../test/kit/operator/projects.ts";
import { projectResource } from "../resources.ts";
import { collectGarbage, garbageOf } from "./secret-garbage.ts";
import { dropSecretData } from "./secrets.ts";

const namespace = "slipway-org-alpha";
const now = new Date("2026-01-01T01:00:00Z");
const OLD = "2026-01-01T00:49:59Z";

function secret(name: string, metadata: object = {}): KubernetesObject {
  const labels = { "slipway.dev/project": "shop", "app.kubernetes.io/managed-by": "slipway" };
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace, creationTimestamp: OLD, labels, ...metadata },
  };
}

function deployment(id: string, settings: Partial<Deployment["settings"]>): Deployment {
  return {
    id,
    status: "succeeded",
    startedAt: OLD,
    settingsHash: id,
    updatedImage: false,
    image: { reference: "app" },
    settings: { plan: "basic", ...settings },
  };
}

const project: Project = {
  ...exampleProject(
    { namespace, name: "shop" },
    {
      envsFrom: [{ name: "shop-env-00000001" }],
      image: {
        url: "registry.example/app:1",
        isPublic: false,
        pullSecretRef: { name: "shop-pull-00000001" },
      },
    },
  ),
  status: {
    deployments: [
      deployment("d2", { envsFrom: [{ name: "shop-env-00000002" }] }),
      deployment("d1", {
        image: { url: "a/b:1", isPublic: false, pullSecretRef: { name: "shop-pull-00000002" } },
      }),
    ],
  },
};
const namesOf = (...secrets: KubernetesObject[]) =>
  garbageOf(project, secrets, now)
    .filter(({ dueInMs }) => dueInMs <= 0)
    .map(({ secret: { metadata } }) => metadata?.name);

describe("garbageOf", () => {
  test("collects what neither the spec nor a listed deployment names", () => {
    const kept = ["shop-env-00000001", "shop-env-00000002", "shop-pull-00000001", "shop-pull-00000002"];
    const garbage = ["shop-env-00000003", "shop-pull-00000003"];
    expect(namesOf(...[...kept, ...garbage].map((name) => secret(name)))).toEqual(garbage);
  });

  test.each<[string, KubernetesObject]>([
    ["a user's own Secret", secret("shop-env-00000003", { labels: {} })],
    [
      "a labelled Secret that Slipway did not create",
      secret("shop-env-00000003", { labels: { "slipway.dev/project": "shop" } }),
    ],
    ["a certificate", secret("shop-0a1b2c3d-tls")],
    ["the login to Amazon's registry", secret("shop-registry")],
    ["Amazon's credentials", secret("shop-aws-00000003")],
    ["another project's", secret("shop-two-env-00000003")],
    ["one that is going already", secret("shop-env-00000003", { deletionTimestamp: OLD })],
    ["one of another namespace", secret("shop-env-00000003", { namespace: "elsewhere" })],
  ])("leaves %s", (_, object) => {
    expect(namesOf(object)).toEqual([]);
  });

  const bytes = (mib: number) => ({ "slipway.dev/env-bytes": String(mib * 2 ** 20) });

  test("collects those of the oldest deployments that are over the budget of bytes, never those of the spec or of the serving version", () => {
    const deployed = ["08", "07", "06", "05", "04", "03"].map((id, index) => ({
      ...deployment(`d${id}`, { envsFrom: [{ name: `shop-env-000000${id}` }] }),
      status: index < 2 ? ("superseded" as const) : ("succeeded" as const),
    }));
    const of = { ...project, status: { deployments: deployed } };
    const secrets = ["01", "03", "04", "05", "06", "07", "08"].map((id) =>
      secret(`shop-env-000000${id}`, { annotations: bytes(id === "01" ? 9 : 1.5) }),
    );
    const garbage = garbageOf(of, secrets, now).map(({ secret: { metadata } }) => metadata?.name);
    // 06 is what serves; 08 and 07 are kept for rollbacks, and with 05 it would be 4.5 MiB.
    expect(garbage).toEqual(["shop-env-00000005", "shop-env-00000004", "shop-env-00000003"]);
  });

  test("collects what no deployment names yet sooner when it is over the budget, the newest last", () => {
    const created = (second: number) =>
      secret(`shop-env-000001${second}`, {
        creationTimestamp: `2026-01-01T00:58:${second}Z`,
        annotations: bytes(2.5),
      });
    expect(garbageOf(project, [created(10), created(50)], now)).toEqual([
      { secret: created(50), dueInMs: 530_000 },
      { secret: created(10), dueInMs: -20_000 },
    ]);
  });

  test("keeps what is younger than ten minutes, or was needed again since", () => {
    const young = secret("shop-env-00000003", { creationTimestamp: "2026-01-01T00:51:00Z" });
    expect(garbageOf(project, [young], now)).toEqual([{ secret: young, dueInMs: 60_000 }]);
    const annotations = { "slipway.dev/reused-at": "2026-01-01T00:59:00.000Z" };
    expect(namesOf(secret("shop-env-00000003", { annotations }))).toEqual([]);
  });
});

describe("collectGarbage", () => {
  let api: FakeApiserver;
  let client: KubeClient;
  let secrets: Store;
  const present = async () =>
    (await client.listAll<KubernetesObject>(resources.secrets, { namespace })).map(
      ({ metadata }) => metadata?.name,
    );
  const collect = (of: Project) => collectGarbage(of, { client, secrets, now }, new AbortController().signal);

  beforeEach(async () => {
    api = await FakeApiserver.start();
    client = KubeClient.forUrl(api.url);
    const index = { "slipway.dev/project": byLabel("slipway.dev/project") };
    secrets = new Store({ transform: dropSecretData, indexers: index });
    secrets.replace([], "0");
  });
  afterEach(async () => {
    await client.close();
    await api.stop();
  });

  /** As the watch would receive it. */
  async function make(object: KubernetesObject): Promise<KubernetesObject> {
    const created = await client.create<KubernetesObject>(resources.secrets, object);
    const seen = { ...created, metadata: { ...created.metadata, ...object.metadata } };
    secrets.upsert(structuredClone(seen));
    return seen;
  }

  const job = exampleJob({ namespace, name: "nightly" });
  const own = { "app.kubernetes.io/managed-by": "slipway" };

  async function makeJob(name: string, envs: string[], pull?: string, ended?: string): Promise<void> {
    await client.create<KubernetesObject>(resources.jobs, {
      metadata: { name, namespace, labels: { ...own, "slipway.dev/project": "nightly" } },
      spec: {
        template: {
          spec: {
            containers: [{ envFrom: envs.map((env) => ({ secretRef: { name: env } })) }],
            ...(pull === undefined ? {} : { imagePullSecrets: [{ name: pull }] }),
          },
        },
      },
      status: { conditions: ended === undefined ? [] : [{ type: ended, status: "True" }] },
    } as KubernetesObject);
  }

  test("deletes what is due, and returns when the next is", async () => {
    const live = await client.create<Project>(projectResource, project);
    await make(secret("shop-env-00000003"));
    await make(secret("shop-env-00000001"));
    await make(secret("shop-env-00000004", { creationTimestamp: "2026-01-01T00:51:00Z" }));
    expect(await collect({ ...project, metadata: live.metadata })).toBe(60_000);
    expect((await present()).sort()).toEqual(["shop-env-00000001", "shop-env-00000004"]);
  });

  test("reads the live project first: it may name one again by now", async () => {
    const spec = { ...project.spec, envsFrom: [{ name: "shop-env-00000003" }] };
    const live = await client.create<Project>(projectResource, { ...project, spec });
    await make(secret("shop-env-00000003"));
    await collect({ ...project, metadata: live.metadata });
    expect(await present()).toEqual(["shop-env-00000003"]);
  });

  test("leaves one that was marked as needed since it was seen", async () => {
    const live = await client.create<Project>(projectResource, project);
    const { metadata } = await make(secret("shop-env-00000003"));
    const annotations = { "slipway.dev/reused-at": now.toISOString() };
    const ref = { namespace, name: metadata?.name ?? "" };
    await client.patch(resources.secrets, ref, { metadata: { annotations } });
    await collect({ ...project, metadata: live.metadata });
    expect(await present()).toEqual(["shop-env-00000003"]);
  });

  test("keeps what a run of a job uses until that has ended, and checks again", async () => {
    const { metadata } = await client.create<Project>(projectResource, job);
    const names = ["nightly-env-00000003", "nightly-pull-00000003", "nightly-env-00000005"];
    for (const name of names) {
      await make(secret(name, { labels: { ...own, "slipway.dev/project": "nightly" } }));
    }
    await makeJob("nightly-1", ["nightly-env-00000003"], "nightly-pull-00000003");
    await makeJob("nightly-0", ["nightly-env-00000005"], undefined, "Complete");
    expect(await collect({ ...job, metadata })).toBe(60_000);
    expect((await present()).sort()).toEqual(["nightly-env-00000003", "nightly-pull-00000003"]);
    await client.delete(resources.jobs, { namespace, name: "nightly-1" });
    await collect({ ...job, metadata });
    expect(await present()).toEqual([]);
  });

  test("asks nothing when nothing is due", async () => {
    await make(secret("shop-env-00000001"));
    const before = api.requests.length;
    expect(await collect(project)).toBeUndefined();
    expect(api.requests.length).toBe(before);
  });
});
