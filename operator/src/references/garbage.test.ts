import { byLabel, KubeClient, type KubernetesObject, resources, Store } from "@slipway/controller-runtime";
import type { Deployment, Project, ProjectStatus } from "@slipway/crds";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { exampleJob, exampleWorker } from "../../../test/kit/operator/projects.ts";
import { dropSecretData } from "../projects/secrets.ts";
import { projectResource } from "../resources.ts";
import { collectResolvedSecrets } from "./garbage.ts";

const namespace = "slipway-org-alpha";
const now = new Date("2026-01-01T01:00:00Z");
const LONG_AGO = "2026-01-01T00:00:00Z";
const [OLD, CURRENT] = [name(1), name(2)];

function name(index: number): string {
  return `shop-refs-${String(index).padStart(12, "0")}`;
}

let api: FakeApiserver;
let client: KubeClient;
let secrets: Store;

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

const own = { "slipway.dev/project": "shop", "app.kubernetes.io/managed-by": "slipway" };

async function makeSecret(of: string, creationTimestamp = LONG_AGO): Promise<void> {
  const metadata = { name: of, namespace, labels: own };
  const created = await client.create<KubernetesObject>(resources.secrets, { metadata } as KubernetesObject);
  secrets.upsert({ ...created, metadata: { ...created.metadata, creationTimestamp } });
}

const template = (secret: string) => ({
  spec: { containers: [{ name: "app", envFrom: [{ secretRef: { name: secret } }] }] },
});
const deployment = (status: Deployment["status"], startedAt = LONG_AGO): Deployment => ({
  id: "d1",
  status,
  startedAt,
  settingsHash: "d1",
  updatedImage: false,
  image: { reference: "app" },
  settings: { plan: "basic" },
});
const statusOf = (newest: Deployment, resolved = CURRENT): ProjectStatus => ({
  references: [{ secret: "shop-env", resolved }],
  deployments: [newest],
});
const make = (of: Project) => client.create<Project>(projectResource, of);
const makeWorker = () => make(exampleWorker({ namespace, name: "shop" }));
const collect = (project: Project, status: ProjectStatus) =>
  collectResolvedSecrets(project, status, { client, secrets, now }, new AbortController().signal);
const present = async () =>
  (await client.listAll<KubernetesObject>(resources.secrets, { namespace }))
    .map(({ metadata }) => metadata?.name)
    .sort();
const controlledBy = (kind: string, owner: string, uid: string) => [
  { apiVersion: "v1", kind, name: owner, uid, controller: true },
];

test("one that nothing uses is deleted, also while the newest deployment fails", async () => {
  const project = await makeWorker();
  await makeSecret(OLD);
  await makeSecret(CURRENT);
  expect(await collect(project, statusOf(deployment("failed")))).toBeUndefined();
  expect(await present()).toEqual([CURRENT]);
});

describe("for five minutes one is kept", () => {
  test("after the current one was created", async () => {
    const project = await makeWorker();
    await makeSecret(OLD);
    await makeSecret(CURRENT, "2026-01-01T00:56:00Z");
    const requests = api.requests.length;
    expect(await collect(project, statusOf(deployment("succeeded")))).toBe(60_000);
    expect(api.requests.length).toBe(requests);
    expect(await present()).toEqual([OLD, CURRENT]);
  });

  test("after a deployment went back to values from before", async () => {
    const project = await makeWorker();
    await makeSecret(OLD);
    await makeSecret(CURRENT);
    const newest = deployment("succeeded", "2026-01-01T00:57:00Z");
    expect(await collect(project, statusOf(newest))).toBe(120_000);
    expect(await present()).toEqual([OLD, CURRENT]);
  });

  test("unless there are more than ten: a loop of changes does not fill the cluster", async () => {
    const project = await makeWorker();
    for (let index = 1; index <= 13; index++) {
      await makeSecret(name(index), `2026-01-01T00:59:${10 + index}Z`);
    }
    await collect(project, statusOf(deployment("in_progress"), name(13)));
    const kept = Array.from({ length: 11 }, (_, index) => name(index + 3));
    expect(await present()).toEqual(kept);
  });
});

test("the copy of the last deployment that succeeded is kept: a project with a volume may return to it", async () => {
  const project = await makeWorker();
  for (const index of [0, 1, 2]) {
    await makeSecret(name(index));
  }
  const copy = (index: number) => [{ source: "VariableGroup/mail", resolved: name(index) }];
  const newest = deployment("failed");
  const served = { ...deployment("succeeded"), id: "d0", sharedVariables: copy(0) };
  const older = { ...deployment("succeeded"), id: "d00", sharedVariables: copy(1) };
  await collect(project, { sharedVariables: copy(2), deployments: [newest, served, older] });
  expect(await present()).toEqual([name(0), name(2)]);
});

describe("kept is what is named by", () => {
  const succeeded = statusOf(deployment("succeeded"));
  const uid = (project: Project) => project.metadata.uid ?? "";
  const kept = async (project: Project) => {
    await makeSecret(OLD);
    await makeSecret(CURRENT);
    expect(await collect(project, succeeded)).toBe(600_000);
    expect(await present()).toEqual([OLD, CURRENT]);
  };

  test("the Deployment of a paused project, which keeps its template until the pre-deploy command has succeeded", async () => {
    const project = await makeWorker();
    const ownerReferences = controlledBy("Project", "shop", uid(project));
    await client.create<KubernetesObject>(resources.deployments, {
      metadata: { name: "shop", namespace, labels: own, ownerReferences },
      spec: { replicas: 0, template: template(OLD) },
    } as KubernetesObject);
    await kept(project);
  });

  test("a ReplicaSet with instances, until it has none", async () => {
    const project = await makeWorker();
    const ownerReferences = controlledBy("Deployment", "shop", "of the Deployment");
    await client.create<KubernetesObject>(resources.replicaSets, {
      metadata: { name: "shop-1", namespace, labels: own, ownerReferences },
      spec: { replicas: 1, template: template(OLD) },
    } as KubernetesObject);
    await kept(project);
    await client.patch(resources.replicaSets, { namespace, name: "shop-1" }, { spec: { replicas: 0 } });
    await collect(project, succeeded);
    expect(await present()).toEqual([CURRENT]);
  });

  test("a pod that has not ended", async () => {
    const project = await makeWorker();
    const ownerReferences = controlledBy("ReplicaSet", "shop-1", "of the ReplicaSet");
    await client.create<KubernetesObject>(resources.pods, {
      metadata: { name: "shop-1-a", namespace, labels: own, ownerReferences },
      ...template(OLD),
    } as KubernetesObject);
    await kept(project);
    await client.patch(
      resources.pods,
      { namespace, name: "shop-1-a" },
      { status: { phase: "Failed" } },
      { subresource: "status" },
    );
    await collect(project, succeeded);
    expect(await present()).toEqual([CURRENT]);
  });

  test("a pre-deploy command's Job", async () => {
    const project = await makeWorker();
    await client.create<KubernetesObject>(resources.jobs, {
      metadata: { name: "shop-pre-deploy-1", namespace, labels: { "slipway.dev/pre-deploy": "shop" } },
      spec: { template: template(OLD) },
    } as KubernetesObject);
    await kept(project);
  });

  test("a job's CronJob, and its unfinished runs", async () => {
    const project = await make(exampleJob({ namespace, name: "shop" }));
    const ownerReferences = controlledBy("Project", "shop", uid(project));
    await client.create<KubernetesObject>(resources.cronJobs, {
      metadata: { name: "shop", namespace, labels: own, ownerReferences },
      spec: { jobTemplate: { spec: { template: template(OLD) } } },
    } as KubernetesObject);
    await client.create<KubernetesObject>(resources.jobs, {
      metadata: { name: "shop-1", namespace, labels: own },
      spec: { template: template(name(3)) },
    } as KubernetesObject);
    await makeSecret(name(3));
    await makeSecret(OLD);
    await makeSecret(CURRENT);
    expect(await collect(project, succeeded)).toBe(600_000);
    expect(await present()).toEqual([OLD, CURRENT, name(3)]);
  });
});
