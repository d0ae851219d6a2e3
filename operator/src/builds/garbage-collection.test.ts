import { KubeClient, type KubernetesObject, resources, Store } from "@slipway/controller-runtime";
import { type Build, type Deployment, labels, type Project } from "@slipway/crds";
import { silentLogger } from "@slipway/process";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { exampleBuild } from "../../../test/kit/operator/builds.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { projectResource } from "../resources.ts";
import {
  deleteRetiredImages,
  deleteUnusedCaches,
  digestsInUse,
  type GarbageCollectorOptions,
} from "./garbage-collection.ts";
import { cacheName } from "./names.ts";
import { parseBuildSettings } from "./settings.ts";

const namespace = "slipway-org-alpha";
const digest = (letter: string) => `sha256:${letter.repeat(64)}`;
const signal = new AbortController().signal;
const settings = parseBuildSettings("{ image: builder, registry: { host: builds.example } }");

let api: FakeApiserver;
let client: KubeClient;
let clock: FakeClock;
let options: GarbageCollectorOptions;
let projects: Store<Project>;
let builds: Store<Build>;
let deleted: string[];
let retired: { organization_id: string; project_id: string; digest: string; retired_at: Date }[];

async function makeProject(name: string, more: Partial<Project> = {}): Promise<Project> {
  const { metadata: _metadata, ...project } = { ...exampleProject({ namespace, name }), ...more };
  return client.create<Project>(projectResource, { ...project, metadata: { namespace, name } });
}
const makeCache = (name: string) =>
  client.create(resources.persistentVolumeClaims, {
    metadata: { name, namespace: settings.namespace, labels: { "slipway.dev/build-cache": name } },
  } as KubernetesObject);
const caches = async () => {
  const { items } = await client.list<KubernetesObject>(resources.persistentVolumeClaims, {
    namespace: settings.namespace,
  });
  return items.map(({ metadata }) => metadata?.name);
};

beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
  clock = new FakeClock(new Date(Date.now() + 7_200_000).toISOString());
  projects = new Store<Project>();
  projects.replace([], "0");
  builds = new Store<Build>();
  builds.replace([], "0");
  [deleted, retired] = [[], []];
  options = {
    client,
    clock,
    log: silentLogger,
    projects,
    builds,
    settings: () => settings,
    retired: {
      list: async () => [...retired],
      forget: async (image) => {
        retired = retired.filter((one) => one.digest !== image.digest);
      },
    },
    deleteImage: async (repository, which) => void deleted.push(`${repository}@${which}`),
  };
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

test("the cache of a deleted project is deleted, also when another project has its id; not one whose project the cache lacks", async () => {
  const project = await makeProject("pshop");
  const own = cacheName({ id: "pshop", uid: project.metadata.uid ?? "" });
  const before = cacheName({ id: "pshop", uid: "of-one-before" });
  await makeCache(own);
  await makeCache(before);
  expect(await deleteUnusedCaches(options, signal)).toBe(1);
  expect(await caches()).toEqual([own]);
  await client.delete(projectResource, { namespace, name: "pshop" });
  expect(await deleteUnusedCaches(options, signal)).toBe(1);
  expect(await caches()).toEqual([]);
});

test("the cache of a project that has not built for two weeks is deleted, unless a Build of it exists", async () => {
  const days = (count: number) => clock.advance(count * 86_400_000);
  const project = await makeProject("pshop");
  projects.replace([project], "1");
  const own = cacheName({ id: "pshop", uid: project.metadata.uid ?? "" });
  await makeCache(own);
  await days(13);
  expect(await deleteUnusedCaches(options, signal)).toBe(0);
  await days(2);
  builds.replace([exampleBuild("b1", 0)], "1");
  expect(await deleteUnusedCaches(options, signal)).toBe(0);
  builds.replace([], "2");
  const built = {
    ...project,
    status: { build: { imageBuildAt: new Date(clock.now().getTime() - 86_400_000).toISOString() } },
  };
  await client.updateStatus(projectResource, built);
  expect(await deleteUnusedCaches(options, signal)).toBe(0);
  await days(20);
  expect(await deleteUnusedCaches(options, signal)).toBe(1);
  expect(await caches()).toEqual([]);
});

test("a young cache stays, whatever its project", async () => {
  await makeCache("cache-new");
  const young = new FakeClock(new Date().toISOString());
  expect(await deleteUnusedCaches({ ...options, clock: young }, signal)).toBe(0);
  expect(await caches()).toEqual(["cache-new"]);
});

test("an image is deleted once nothing runs it or can roll back to it, and stays recorded until then", async () => {
  const deployment = { id: "d1", image: { reference: "r", digest: digest("a") }, settings: {} } as Deployment;
  await makeProject("pshop", { status: { deployments: [deployment] } });
  const row = (letter: string, project_id = "pshop") => ({
    organization_id: "alpha",
    project_id,
    digest: digest(letter),
    retired_at: new Date(),
  });
  retired = [row("a"), row("b"), row("c", "pgone")];
  expect(await deleteRetiredImages(options, signal)).toBe(2);
  expect(deleted).toEqual([`alpha/pshop@${digest("b")}`, `alpha/pgone@${digest("c")}`]);
  expect(retired.map((one) => one.digest)).toEqual([digest("a")]);
});

test("one that cannot be deleted is retried, and does not block others", async () => {
  const row = (letter: string) => {
    return { organization_id: "alpha", project_id: "p", digest: digest(letter), retired_at: new Date() };
  };
  retired = [row("a"), row("b")];
  const deleteImage: GarbageCollectorOptions["deleteImage"] = async (_, bad) => {
    if (bad === digest("a")) {
      throw new Error("bad manifest");
    }
  };
  await expect(deleteRetiredImages({ ...options, deleteImage }, signal)).rejects.toThrow("bad manifest");
  expect(retired.map((one) => one.digest)).toEqual([digest("a")]);
});

test("images that a project runs, deploys, rolled back to or lists are in use", () => {
  const project = exampleProject({ namespace, name: "p" });
  const used = digestsInUse({
    ...project,
    metadata: {
      ...project.metadata,
      labels: { [labels.project]: "p" },
    },
    spec: { ...project.spec, rollback: { at: "2026-01-01T00:00:00Z", digest: digest("d") } },
    status: {
      image: { reference: "r", digest: digest("a") },
      build: { image: { reference: "r", digest: digest("b") } },
      deployments: [{ image: { reference: "r", digest: digest("c") }, settings: {} } as Deployment],
    },
  });
  expect([...used].toSorted()).toEqual(["a", "b", "c", "d"].map(digest));
});
