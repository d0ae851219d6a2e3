import {
  byLabel,
  ConditionSet,
  KubeClient,
  type KubernetesObject,
  resources,
  Store,
} from "@slipway/controller-runtime";
import {
  credentialsHash,
  type Deployment,
  labels,
  type Project,
  type ProjectStatus,
  passwordLabel,
} from "@slipway/crds";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { exampleCredentials, exampleDatabase } from "../../../test/kit/databases/examples.ts";
import { exampleProject, exampleWorker } from "../../../test/kit/operator/projects.ts";
import type { ProjectContext } from "../projects/kind.ts";
import { dropSecretData } from "../projects/secrets.ts";
import { ReferenceSteps } from "./reconciler.ts";
import { referenceIndexers } from "./sources.ts";
import { passwordHashIn } from "./targets.ts";

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

let versions = 1;

/** A PostgreSQL database with this password in force. @param referenceUsername of the account that references get */
async function database(password: string, referenceUsername?: string): Promise<string> {
  const credentials = { ...exampleCredentials, password };
  const data = Object.fromEntries(
    Object.entries(credentials).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
  );
  const ref = { namespace, name: "pdb-credentials" };
  if (await client.getOrUndefined(resources.secrets, ref)) {
    await client.patch(resources.secrets, ref, { data });
  } else {
    await client.create(resources.secrets, { metadata: ref, data } as KubernetesObject);
  }
  const hash = credentialsHash(credentials);
  const example = exampleDatabase();
  const inside = { host: "pdb.internal", port: 5432 };
  const now = { inside, bootstrappedAt: "2026-01-01T00:00:00Z", credentialsHash: hash, referenceUsername };
  const metadata = { ...example.metadata, name: "pdb", namespace };
  add({ ...example, metadata, status: { database: now } }, versions++);
  return hash;
}

/** A worker with the address of that database, and what it gets. */
async function dependant() {
  const data = { URL: Buffer.from(`\${project:pdb.connection_string}`).toString("base64") };
  const metadata = { name: "shop-env", namespace };
  await client.create<KubernetesObject>(resources.secrets, { metadata, data } as KubernetesObject);
  const envsFrom = [
    { name: "shop-env", references: [{ reference: "pdb.connection_string", project: "pdb" }] },
  ];
  return add(exampleWorker({ namespace, name: "shop" }, { envsFrom }));
}

type SecretObject = KubernetesObject & { data: Record<string, string> };

async function given(project: Project, status: ProjectStatus) {
  const name = (await resolve(project, status)).get("shop-env") ?? "";
  const secret = await client.get<SecretObject>(resources.secrets, { namespace, name });
  const url = new URL(Buffer.from(secret.data.URL ?? "", "base64").toString());
  return { name, user: url.username, password: url.password, labels: secret.metadata?.labels ?? {} };
}

test("a dependant gets the account for references, and its Secret says whose password it has", async () => {
  const hash = await database("first", "slipway_reference_1");
  const found = await given(await dependant(), {});
  expect(found).toMatchObject({ user: "slipway_reference_1", password: "first" });
  expect(found.labels[passwordLabel("pdb")]).toBe(hash);
});

test("one that an earlier version has deployed with the user itself goes on with it until its values change", async () => {
  await database("first");
  const shop = await dependant();
  const status: ProjectStatus = {};
  const before = await given(shop, status);
  expect(before.user).toBe("app");
  // The user itself has one password, and keeps none before it.
  expect(before.labels).not.toHaveProperty(passwordLabel("pdb"));
  await database("first", "slipway_reference_1");
  expect((await given(shop, status)).name).toBe(before.name);
  const hash = await database("second", "slipway_reference_2");
  const after = await given(shop, status);
  expect(after).toMatchObject({ user: "slipway_reference_2", password: "second" });
  expect(after.labels[passwordLabel("pdb")]).toBe(hash);
  // Another leader, with what the status says.
  expect((await given(shop, status)).name).toBe(after.name);
});

test("a Secret that an earlier version has made is labelled, once", async () => {
  const hash = await database("first", "slipway_reference_1");
  const shop = await dependant();
  const status: ProjectStatus = {};
  const { name } = await given(shop, status);
  const label = passwordLabel("pdb");
  const without = { metadata: { labels: { [label]: null } } };
  secrets.observe(await client.patch<KubernetesObject>(resources.secrets, { namespace, name }, without));
  expect((await given(shop, status)).labels[label]).toBe(hash);
  const writes = api.requests.filter(({ method }) => method === "PATCH").length;
  await given(shop, status);
  expect(api.requests.filter(({ method }) => method === "PATCH").length).toBe(writes);
});

test("a password of PostgreSQL is labelled where its account's name is taken with it", () => {
  const database = { credentialsHash: "of it", referenceUsername: "slipway_reference_1" };
  const target = { ...exampleDatabase(), status: { database } } as Project;
  expect(passwordHashIn(["host", "password"], target)).toBeUndefined();
  expect(passwordHashIn(["username"], target)).toBeUndefined();
  expect(passwordHashIn(["password", "username"], target)).toBe("of it");
  expect(passwordHashIn(["connection_string"], target)).toBe("of it");
});
