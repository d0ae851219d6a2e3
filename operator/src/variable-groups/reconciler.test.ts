import {
  ConditionSet,
  KubeClient,
  type KubernetesObject,
  resources,
  Store,
} from "@slipway/controller-runtime";
import type { Deployment, Project, ProjectStatus, VariableGroup } from "@slipway/crds";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { exampleWorker } from "../../../test/kit/operator/projects.ts";
import type { ProjectContext } from "../projects/kind.ts";
import { dropSecretData } from "../projects/secrets.ts";
import { SharedVariableSteps } from "./reconciler.ts";

const namespace = "slipway-org-alpha";
let api: FakeApiserver;
let client: KubeClient;
let secrets: Store;
let projects: Store<Project>;
let variableGroups: Store<VariableGroup>;
let steps: SharedVariableSteps;

beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
  secrets = new Store({ transform: dropSecretData });
  secrets.replace([], "0");
  projects = new Store<Project>({});
  projects.replace([], "0");
  variableGroups = new Store<VariableGroup>({});
  variableGroups.replace([], "0");
  const stores = { projects, secrets, variableGroups, children: [] };
  steps = new SharedVariableSteps({ client, stores, clock: { monotonic: () => 0 }, variableRollouts: 1 });
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

/** Writes the Secret, as another operator does, and reports it. */
async function write(value: string, name = "vault", variable = "TOKEN"): Promise<void> {
  const ref = { namespace, name };
  const data = { [variable]: Buffer.from(value).toString("base64") };
  const present = await client.getOrUndefined<KubernetesObject>(resources.secrets, ref);
  const object = { metadata: ref, data } as KubernetesObject;
  const written = present
    ? await client.patch<KubernetesObject>(resources.secrets, ref, { data })
    : await client.create<KubernetesObject>(resources.secrets, object);
  secrets.upsert(written);
}

const deployed: Deployment = {
  id: "d1",
  status: "succeeded",
  startedAt: "2026-01-01T00:00:00Z",
  settingsHash: "d1",
  updatedImage: false,
  image: { reference: "app" },
  settings: { plan: "basic", envsFrom: [{ name: "vault" }] },
};

async function resolve(
  status: ProjectStatus,
  name = "shop",
  spec: Partial<Project["spec"]> = {},
  generation = 1,
) {
  const worker = exampleWorker({ namespace, name }, { envsFrom: [{ name: "vault" }], ...spec });
  const project = { ...worker, metadata: { ...worker.metadata, uid: name, generation } };
  const conditions = new ConditionSet([], { now: new Date() });
  const signal = new AbortController().signal;
  const context = { status, conditions, signal } as Partial<ProjectContext> as ProjectContext;
  const { resolved } = await steps.resolve(project, "alpha", context);
  status.observedGeneration = generation;
  return { resolved: resolved.get("Secret/vault"), reason: conditions.get("VariablesReady")?.reason };
}

/** Names of all copies, and what is in them. */
const copies = async () =>
  (
    await client.listAll<KubernetesObject & { data: Record<string, string> }>(resources.secrets, {
      namespace,
    })
  )
    .filter(({ metadata }) => metadata?.name?.includes("-refs-"))
    .map(({ data }) =>
      Object.fromEntries(
        Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]),
      ),
    );

async function writeGroup(name: string, value: string, variable = "TOKEN"): Promise<void> {
  await write(value, `${name}-values`, variable);
  variableGroups.upsert({
    apiVersion: "slipway.dev/v1alpha1",
    kind: "VariableGroup",
    metadata: { namespace, name, uid: name, resourceVersion: "1" },
    spec: { displayName: name, secretRef: { name: `${name}-values` } },
  });
}

// Shows: docs/variable-groups.md#secrets-that-others-write: so that the upgrade replaces no pod
test("a project that is deployed already reads its Secret itself, until that changes", async () => {
  await write("one");
  const status: ProjectStatus = { deployments: [deployed] };
  expect(await resolve(status)).toEqual({ resolved: undefined, reason: "VariablesResolved" });
  expect(status.sharedVariables).toMatchObject([{ source: "Secret/vault", direct: true }]);
  expect(await resolve(status)).toEqual({ resolved: undefined, reason: "VariablesResolved" });
  await write("two");
  const copy = (await resolve(status)).resolved;
  expect(copy).toMatch(/^shop-refs-[0-9a-f]{12}$/);
  expect(status.sharedVariables).toEqual([{ source: "Secret/vault", resolved: copy }]);
});

test("the name of a copy is the same for another operator, and made with a key that only readers of Secrets have", async () => {
  await write("one");
  const [first, second] = [await resolve({}), await resolve({})];
  const stores = { projects, secrets, variableGroups, children: [] };
  const parts = { client, stores, clock: { monotonic: () => 0 }, variableRollouts: 1 };
  steps = new SharedVariableSteps(parts);
  expect([second, await resolve({})]).toEqual([first, first]);
  const ref = { namespace, name: "slipway-copies-key" };
  const { data } = await client.get<KubernetesObject & { data: { key?: string } }>(resources.secrets, ref);
  expect(Buffer.from(data.key ?? "", "base64")).toHaveLength(32);
  await client.delete(resources.secrets, ref);
  steps = new SharedVariableSteps(parts);
  expect((await resolve({})).resolved).not.toBe(first.resolved);
});

test("a new project has a copy from the start", async () => {
  await write("one");
  expect((await resolve({})).resolved).toMatch(/^shop-refs-[0-9a-f]{12}$/);
});

test("one that waits keeps what it has, and takes over the newest values when it is its turn", async () => {
  await write("one");
  const one: ProjectStatus = {};
  const two: ProjectStatus = {};
  const before = (await resolve(two, "two")).resolved;
  await resolve(one, "one");
  await write("two");
  expect((await resolve(one, "one")).reason).toBe("VariablesResolved");
  expect(await resolve(two, "two")).toEqual({ resolved: before, reason: "RolloutQueued" });
  await write("three");
  expect(await resolve(two, "two")).toEqual({ resolved: before, reason: "RolloutQueued" });
  await write("one");
  expect(await resolve(two, "two")).toEqual({ resolved: before, reason: "VariablesResolved" });
});

// Shows: docs/variable-groups.md#changes: a project that waits, and is changed itself | is deployed
// Shows: docs/variable-groups.md#changes: paused projects and jobs | have the values with their next
test("other settings are deployed with the values of now, and a paused project waits for nobody", async () => {
  await write("one");
  const statuses: ProjectStatus[] = [{}, {}, {}];
  const [one = {}, two = {}, three = {}] = statuses;
  for (const [index, status] of statuses.entries()) {
    await resolve(status, `p${index}`);
  }
  await write("two");
  expect((await resolve(one, "p0")).reason).toBe("VariablesResolved");
  expect((await resolve(two, "p1")).reason).toBe("RolloutQueued");
  expect((await resolve(two, "p1", {}, 2)).reason).toBe("VariablesResolved");
  expect((await resolve(three, "p2")).reason).toBe("RolloutQueued");
  expect((await resolve(three, "p2", { paused: true })).reason).toBe("VariablesResolved");
});

test("a paused project keeps its copy, and has the values of now once it resumes", async () => {
  await write("one");
  const status: ProjectStatus = {};
  const before = (await resolve(status)).resolved;
  await write("two");
  expect(await resolve(status, "shop", { paused: true }, 2)).toEqual({
    resolved: before,
    reason: "VariablesResolved",
  });
  expect(await copies()).toEqual([{ TOKEN: "one" }]);
  expect((await resolve(status, "shop", {}, 3)).resolved).not.toBe(before);
  expect(await copies()).toEqual(expect.arrayContaining([{ TOKEN: "one" }, { TOKEN: "two" }]));
});

// Shows: docs/variable-groups.md#values: a variable of several
test("a project has one copy of all its groups, in which a later one wins, and one of Secrets that others write", async () => {
  await writeGroup("mail", "mail");
  await writeGroup("logs", "logs");
  await writeGroup("more", "more", "MORE");
  await write("one");
  await write("two", "second");
  const status: ProjectStatus = {};
  const spec = {
    variableGroups: ["mail", "logs", "more"],
    envsFrom: [{ name: "vault" }, { name: "second" }],
  };
  await resolve(status, "shop", spec);
  expect(await copies()).toEqual(expect.arrayContaining([{ TOKEN: "logs", MORE: "more" }, { TOKEN: "two" }]));
  expect(await copies()).toHaveLength(2);
  expect(new Set(status.sharedVariables?.map(({ resolved }) => resolved)).size).toBe(2);
  expect(status.sharedVariables?.map(({ source }) => source)).toEqual([
    "VariableGroup/mail",
    "VariableGroup/logs",
    "VariableGroup/more",
    "Secret/vault",
    "Secret/second",
  ]);
});

test("what is attached or detached waits for nobody, also where its generation was observed before", async () => {
  await writeGroup("mail", "mail");
  await writeGroup("logs", "logs");
  const [other, status]: ProjectStatus[] = [{}, {}];
  const attach = (to: ProjectStatus | undefined, name: string, ...variableGroups: string[]) =>
    resolve(to ?? {}, name, { variableGroups, envsFrom: [] });
  await attach(other, "other", "mail");
  await attach(status, "shop", "mail");
  await writeGroup("mail", "changed");
  expect((await attach(other, "other", "mail")).reason).toBe("VariablesResolved");
  expect((await attach(status, "shop", "mail")).reason).toBe("RolloutQueued");
  expect((await attach(status, "shop", "mail", "logs")).reason).toBe("VariablesResolved");
});

// Shows: docs/variable-groups.md#limits: copies of an organization
test("copies of an organization have a bound, at which a project keeps its last values and a new one does not start", async () => {
  await write("one");
  const status: ProjectStatus = {};
  const before = (await resolve(status)).resolved;
  const [copy] = secrets.list(namespace).filter(({ metadata }) => metadata?.name === before);
  expect(copy?.metadata?.annotations).toEqual({ "slipway.dev/env-bytes": "8" });
  const metadata = { ...copy?.metadata, name: "pother-refs-000000000000", uid: "other" };
  const labels = { ...copy?.metadata?.labels, "slipway.dev/project": "pother" };
  const annotations = { "slipway.dev/env-bytes": String(64 * 1_048_576 - 15) };
  secrets.upsert({ ...copy, metadata: { ...metadata, labels, annotations } } as KubernetesObject);
  await write("two");
  expect(await resolve(status)).toEqual({ resolved: before, reason: "VariablesTooLarge" });
  await writeGroup("mail", "mail");
  await expect(resolve({}, "new", { variableGroups: ["mail"], envsFrom: [] })).rejects.toMatchObject({
    reason: "VariablesTooLarge",
  });
  expect(await copies()).toHaveLength(1);
});

// Shows: docs/variable-groups.md#secrets-that-others-write: Above 256 KiB they are read directly
test("a Secret that is too large to be copied is read directly, and the condition says so", async () => {
  await write("x".repeat(100_000));
  const large = Object.fromEntries(
    ["A", "B", "C"].map((name) => [name, Buffer.alloc(100_000, "x").toString("base64")]),
  );
  secrets.upsert(
    await client.patch<KubernetesObject>(resources.secrets, { namespace, name: "vault" }, { data: large }),
  );
  expect(await resolve({})).toEqual({ resolved: undefined, reason: "VariablesTooLarge" });
});
