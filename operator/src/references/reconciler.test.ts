import {
  byLabel,
  ConditionSet,
  KubeClient,
  type KubernetesObject,
  resources,
  Store,
} from "@slipway/controller-runtime";
import { type Deployment, labels, type Project, type ProjectStatus } from "@slipway/crds";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { exampleProject, exampleWorker } from "../../../test/kit/operator/projects.ts";
import type { ProjectContext } from "../projects/kind.ts";
import { dropSecretData } from "../projects/secrets.ts";
import { ReferenceSteps } from "./reconciler.ts";
import { referenceIndexers } from "./sources.ts";

const namespace = "slipway-org-alpha";
let api: FakeApiserver;
let client: KubeClient;
let secrets: Store;
let projects: Store<Project>;
let steps: ReferenceSteps;
/** How often a project was read from the store. */
let reads = 0;

beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
  secrets = new Store({
    transform: dropSecretData,
    indexers: { [labels.project]: byLabel(labels.project) },
  });
  secrets.replace([], "0");
  projects = new (class extends Store<Project> {
    override get(...ref: Parameters<Store<Project>["get"]>) {
      reads += 1;
      return super.get(...ref);
    }
  })({ indexers: referenceIndexers });
  projects.replace([], "0");
  steps = new ReferenceSteps({ client, stores: { projects, secrets } });
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

/** A Secret whose one variable is a reference, and its entry in a spec. */
async function source(name: string, project: string) {
  const data = { PEER: Buffer.from(`\${project:${project}.host}`).toString("base64") };
  await client.create<KubernetesObject>(resources.secrets, {
    metadata: { name, namespace },
    data,
  } as KubernetesObject);
  return { name, references: [{ reference: `${project}.host`, project }] };
}

function add(project: Project, generation = 1): Project {
  const { name } = project.metadata;
  const added = {
    ...project,
    metadata: { ...project.metadata, uid: `of ${name}`, generation, resourceVersion: String(generation) },
  };
  projects.upsert(added);
  return added;
}

const peer = (name: string, envsFrom?: Project["spec"]["envsFrom"]) =>
  add(exampleProject({ namespace, name }, { exposure: "private", envsFrom }));

const resolve = (project: Project, status: ProjectStatus) =>
  steps.resolve(project, "alpha", {
    status,
    conditions: new ConditionSet([], { now: new Date() }),
    signal: new AbortController().signal,
  } as Partial<ProjectContext> as ProjectContext);

const resolvedSecrets = async () =>
  (await client.listAll<KubernetesObject>(resources.secrets, { namespace })).filter(({ metadata }) =>
    metadata?.name?.includes("-refs-"),
  );

test("the graph of references is searched once for each generation of a project that has values", async () => {
  for (let index = 0; index < 20; index++) {
    const next = `p${index + 1}`;
    peer(`p${index}`, [{ name: "env", references: [{ reference: `${next}.host`, project: next }] }]);
  }
  peer("p20");
  const envsFrom = [await source("one", "p0"), await source("two", "p0"), await source("three", "p0")];
  const shop = add(exampleWorker({ namespace, name: "shop" }, { envsFrom }));
  const status: ProjectStatus = {};
  const readsOf = async (project: Project) => {
    reads = 0;
    await resolve(project, status);
    return reads;
  };
  const first = await readsOf(shop);
  expect(first).toBeGreaterThan(20);
  expect(first).toBeLessThan(60);
  expect(await readsOf(shop)).toBe(3);
  expect(await readsOf(add(shop, 2))).toBe(first);
});

test("no Secret is created for a project that waits for another one", async () => {
  peer("p0");
  const envsFrom = [await source("one", "p0"), await source("two", "missing")];
  const shop = add(exampleWorker({ namespace, name: "shop" }, { envsFrom }));
  await expect(resolve(shop, {})).rejects.toThrow("does not exist any more");
  expect(await resolvedSecrets()).toEqual([]);
});

test("the version that serves while a pre-deploy command comes first keeps its values, also without a volume", async () => {
  peer("p0");
  const [before, wanted] = [await source("before", "p0"), await source("wanted", "p0")];
  const spec = { envsFrom: [wanted], preDeployCommand: ["migrate"] };
  const shop = add(exampleWorker({ namespace, name: "shop" }, spec));
  // The wanted version has no deployment yet.
  const newest: Deployment = {
    id: "d1",
    status: "succeeded",
    startedAt: "2026-01-01T00:00:00Z",
    settingsHash: "d1",
    updatedImage: false,
    image: { reference: "app" },
    settings: { plan: "basic", envsFrom: [before] },
  };
  const status: ProjectStatus = { deployments: [newest] };
  expect([...(await resolve(shop, status)).keys()].sort()).toEqual(["before", "wanted"]);
  expect(status.references?.map(({ secret }) => secret)).toEqual(["wanted", "before"]);
});
