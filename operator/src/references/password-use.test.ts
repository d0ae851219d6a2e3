import { byLabel, KubeClient, type KubernetesObject, resources, Store } from "@slipway/controller-runtime";
import { labels, MANAGED_BY, type Project } from "@slipway/crds";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { exampleDatabase } from "../../../test/kit/databases/examples.ts";
import { exampleWorker } from "../../../test/kit/operator/projects.ts";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { dropSecretData } from "../projects/secrets.ts";
import { BY_PASSWORD, passwordKeysOf, passwordLabels } from "./password-labels.ts";
import { CHANGED_MS, PasswordUse, UNUSED_MS, USED_MS } from "./password-use.ts";

const namespace = "slipway-org-alpha";
const [OLD, NEW] = ["0".repeat(32), "1".repeat(32)];
const database = exampleDatabase();

let api: FakeApiserver;
let client: KubeClient;
const clock = new FakeClock("2026-03-01T00:00:00Z");
let secrets: Store;
let projects: Store<Project>;

beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
  const indexers = { [labels.project]: byLabel(labels.project), [BY_PASSWORD]: passwordKeysOf };
  secrets = new Store({ transform: dropSecretData, indexers });
  projects = new Store<Project>();
  secrets.replace([], "0");
  projects.replace([], "0");
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

/** A worker that runs from a Secret with this password. */
async function worker(name: string, hash: string, { paused = false, createdAt = "" } = {}): Promise<void> {
  const example = exampleWorker({ namespace, name });
  const project = { ...example, spec: { ...example.spec, ...(paused ? { paused } : {}) } };
  projects.upsert(project);
  const secret = `${name}-refs-${hash.slice(0, 12)}`;
  const own = {
    [labels.project]: name,
    [labels.managedBy]: MANAGED_BY,
    ...passwordLabels(new Map([[database.metadata.name, hash]])),
  };
  const made = createdAt === "" ? {} : { creationTimestamp: createdAt };
  secrets.upsert({ metadata: { name: secret, namespace, labels: own, ...made } } as KubernetesObject);
  const containers = [{ name: "app", envFrom: [{ secretRef: { name: secret } }] }];
  const owner = {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    name: `${name}-1`,
    uid: "of the ReplicaSet",
    controller: true,
  };
  const metadata = {
    name: `${name}-0`,
    namespace,
    labels: { [labels.project]: name },
    ownerReferences: [owner],
  };
  const pod = { metadata, spec: { containers }, status: { phase: "Running" } };
  await client.create<KubernetesObject>(resources.pods, pod as KubernetesObject);
}

/** As a process that knows nothing from before. */
const isUsed = (hash: string, of = database) =>
  new PasswordUse({ client, clock, stores: { projects, secrets } }).isUsed(
    of,
    hash,
    AbortSignal.timeout(10_000),
  );

test("a password is used while an instance that was started with it runs", async () => {
  await worker("first", NEW);
  expect(await isUsed(OLD)).toBe(false);
  await worker("second", OLD);
  expect(await isUsed(OLD)).toBe(true);
  const other = { ...database, metadata: { ...database.metadata, name: "other" } };
  expect(await isUsed(OLD, other)).toBe(false);
  await client.delete(resources.pods, { namespace, name: "second-0" });
  expect(await isUsed(OLD)).toBe(false);
  expect(await isUsed(NEW)).toBe(true);
});

test("nothing is read where no Secret has it", async () => {
  await worker("first", NEW);
  const before = api.requests.length;
  expect(await isUsed(OLD)).toBe(false);
  expect(api.requests.length).toBe(before);
});

test("what a dependant's status names is used, without a read", async () => {
  await worker("first", OLD);
  const project = projects.get(namespace, "first") as Project;
  const references = [{ secret: "env", resolved: `first-refs-${OLD.slice(0, 12)}` }];
  projects.upsert({
    ...project,
    metadata: { ...project.metadata, resourceVersion: "2" },
    status: { references },
  });
  const before = api.requests.length;
  expect(await isUsed(OLD)).toBe(true);
  expect(api.requests.length).toBe(before);
});

test("a database that is reconciled often reads no more often than every 15 s", async () => {
  await worker("first", OLD);
  const use = new PasswordUse({ client, clock, stores: { projects, secrets } });
  const ask = () => use.isUsed(database, OLD, AbortSignal.timeout(10_000));
  expect(await ask()).toBe(true);
  const before = api.requests.length;
  await client.delete(resources.pods, { namespace, name: "first-0" });
  expect(await ask()).toBe(true);
  expect(api.requests.length).toBe(before + 1);
  await clock.advance(USED_MS);
  expect(await ask()).toBe(false);
});

test("one that is not used is read no more often than every 5 s, unless another Secret has it", async () => {
  await worker("first", OLD);
  await client.delete(resources.pods, { namespace, name: "first-0" });
  const use = new PasswordUse({ client, clock, stores: { projects, secrets } });
  const ask = () => use.isUsed(database, OLD, AbortSignal.timeout(10_000));
  expect(await ask()).toBe(false);
  const before = api.requests.length;
  expect(await ask()).toBe(false);
  expect(api.requests.length).toBe(before);
  await worker("second", OLD);
  expect(await ask()).toBe(true);
  await client.delete(resources.pods, { namespace, name: "second-0" });
  await clock.advance(USED_MS);
  expect(await ask()).toBe(false);
  const later = api.requests.length;
  await clock.advance(UNUSED_MS);
  expect(await ask()).toBe(false);
  expect(api.requests.length).toBeGreaterThan(later);
});

test("a password counts as used for a minute after a dependant got it, or another one", async () => {
  const started = clock.now().toISOString();
  await worker("first", OLD, { createdAt: started });
  await client.delete(resources.pods, { namespace, name: "first-0" });
  expect(await isUsed(OLD)).toBe(true);
  await clock.advance(CHANGED_MS);
  expect(await isUsed(OLD)).toBe(false);
  // A Secret of other values begins a deployment, of which the status says that it has it.
  await worker("first", NEW, { createdAt: clock.now().toISOString() });
  const project = projects.get(namespace, "first") as Project;
  const references = [{ secret: "env", resolved: `first-refs-${NEW.slice(0, 12)}` }];
  projects.upsert({
    ...project,
    metadata: { ...project.metadata, resourceVersion: "2" },
    status: { references },
  });
  expect(await isUsed(OLD)).toBe(true);
  await clock.advance(CHANGED_MS);
  expect(await isUsed(OLD)).toBe(false);
});

test("of a paused dependant what runs counts, and not what it would be started with", async () => {
  await worker("first", OLD, { paused: true });
  const template = {
    spec: { containers: [{ envFrom: [{ secretRef: { name: `first-refs-${OLD.slice(0, 12)}` } }] }] },
  };
  const metadata = { name: "first", namespace, labels: { [labels.project]: "first" } };
  await client.create(resources.deployments, {
    metadata,
    spec: { replicas: 0, template },
  } as KubernetesObject);
  expect(await isUsed(OLD)).toBe(true);
  await client.delete(resources.pods, { namespace, name: "first-0" });
  expect(await isUsed(OLD)).toBe(false);
  const project = projects.get(namespace, "first") as Project;
  const spec = { ...project.spec, paused: false };
  projects.upsert({ ...project, metadata: { ...project.metadata, resourceVersion: "2" }, spec });
  expect(await isUsed(OLD)).toBe(true);
});
