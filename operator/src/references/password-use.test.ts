import { byLabel, KubeClient, type KubernetesObject, resources, Store } from "@slipway/controller-runtime";
import { labels, type Project } from "@slipway/crds";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { exampleDatabase } from "../../../test/kit/databases/examples.ts";
import { exampleWorker } from "../../../test/kit/operator/projects.ts";
import { dropSecretData } from "../projects/secrets.ts";
import { BY_PASSWORD, passwordKeysOf, passwordLabels } from "./password-labels.ts";
import { isPasswordUsed } from "./password-use.ts";

const namespace = "slipway-org-alpha";
const [OLD, NEW] = ["0".repeat(32), "1".repeat(32)];
const database = exampleDatabase();

let api: FakeApiserver;
let client: KubeClient;
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
async function worker(name: string, hash: string): Promise<void> {
  const project = exampleWorker({ namespace, name });
  projects.upsert(project);
  const secret = `${name}-refs-${hash.slice(0, 12)}`;
  const own = { [labels.project]: name, ...passwordLabels(new Map([[database.metadata.name, hash]])) };
  secrets.upsert({ metadata: { name: secret, namespace, labels: own } } as KubernetesObject);
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

const isUsed = (hash: string, of = database) =>
  isPasswordUsed(of, hash, { client, stores: { projects, secrets } }, AbortSignal.timeout(10_000));

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
