import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { type JobRun, jobRunName, type Project } from "@slipway/crds";
import { connectLedger, findJobRun, type Ledger, migrateToLatest, recordJobRuns } from "@slipway/ledger";
import { type Clock, systemClock } from "@slipway/process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  type TestOperator,
} from "../../../../test/kit/operator/harness.ts";
import { exampleProject } from "../../../../test/kit/operator/projects.ts";
import { startPostgres, type TestPostgres } from "../../../../test/kit/servers/postgresql.ts";
import { jobRunResource, projectResource } from "../../resources.ts";
import { type CronJob, JOB_NAME, type Job, type RunPod, SCHEDULED_TIMESTAMP } from "./cluster.ts";

/** The whole operator on a real kube-apiserver and a real PostgreSQL; the test is controller-manager and kubelet. */

const NAMESPACE = "slipway-org-alpha";
const NODE = "node-1";

let cluster: TestCluster;
let postgres: TestPostgres;
let ledger: Ledger;
let operator: TestOperator;
let clock: Clock;
/** The minute that begins a few seconds after the operator's clock is set. */
let minute: Date;

const ref = (name: string) => ({ namespace: NAMESPACE, name });
const second = () => `${clock.now().toISOString().slice(0, 19)}Z`;

beforeAll(async () => {
  [cluster, postgres] = await Promise.all([startCluster(), startPostgres()]);
  ledger = connectLedger({ url: postgres.url, applicationName: "test", maxConnections: 4 });
  await migrateToLatest(ledger);
  clock = systemClock;
  operator = await startOperator(cluster, {
    listOrganizations: async () => ["alpha"],
    clock: { ...systemClock, now: () => clock.now() },
    runs: { record: (rows) => recordJobRuns(ledger, rows) },
  });
  await eventually(() => exists(cluster.client, resources.namespaces, { name: NAMESPACE }));
});
afterAll(async () => {
  await operator?.stop();
  await ledger?.destroy();
  await postgres?.stop();
  await cluster?.stop();
});

/** Sets the operator's clock to a few seconds before a minute begins; a project whose schedule is to be due exists by then. */
function beforeMinute(): void {
  const now = systemClock.now().getTime();
  minute = new Date(Math.ceil((now + 4_000) / 60_000) * 60_000);
  const ahead = minute.getTime() - 4_000 - now;
  clock = { ...systemClock, now: () => new Date(systemClock.now().getTime() + ahead) };
}

async function makeProject(name: string, cron = "* * * * *"): Promise<Project> {
  // Its schedule counts from now on, which is before any minute that is set afterwards.
  clock = systemClock;
  const { spec } = exampleProject(ref(name));
  await cluster.client.create<Project>(projectResource, {
    ...exampleProject(ref(name)),
    spec: {
      type: "job",
      name: spec.name,
      plan: "job-basic",
      paymentMode: "per_minute",
      image: spec.image,
      storage: { persistent: false, capacity: 1 },
      job: { cron },
    },
  });
  return await eventually(async () => {
    const live = await cluster.client.get<Project>(projectResource, ref(name));
    return live.status?.job?.scheduledSince !== undefined && live;
  });
}

const job = (name: string) => cluster.client.getOrUndefined<Job>(resources.jobs, ref(name));
const run = (name: string) => cluster.client.getOrUndefined<JobRun>(jobRunResource, ref(name));
const pod = (name: string) => cluster.client.getOrUndefined<RunPod>(resources.pods, ref(name));
const stateOf = async (name: string) =>
  (await cluster.client.get<Project>(projectResource, ref(name))).status?.job ?? {};

/** What the controller-manager does at a minute. */
async function makeJob(project: string, at: Date): Promise<string> {
  const name = jobRunName(project, at);
  const cronJob = await eventually(() =>
    cluster.client.getOrUndefined<CronJob>(resources.cronJobs, ref(project)),
  );
  const { metadata, spec } = cronJob.spec.jobTemplate;
  await cluster.client.create<KubernetesObject>(resources.jobs, {
    metadata: {
      name,
      namespace: NAMESPACE,
      labels: metadata?.labels,
      annotations: { ...metadata?.annotations, [SCHEDULED_TIMESTAMP]: at.toISOString().replace(".000", "") },
    },
    spec,
  } as KubernetesObject);
  return name;
}

/** What the job controller does once a Job may start. */
async function makePod(name: string): Promise<string> {
  const live = (await job(name)) as unknown as {
    spec: { template: { metadata: { labels: object; finalizers: string[] }; spec: object } };
  };
  const { metadata, spec } = live.spec.template;
  await cluster.client.create<KubernetesObject>(resources.pods, {
    metadata: {
      ...metadata,
      name: `${name}-pod`,
      namespace: NAMESPACE,
      labels: { ...metadata.labels, [JOB_NAME]: name },
    },
    spec: { ...spec, nodeName: NODE },
  } as KubernetesObject);
  return `${name}-pod`;
}

/** What a kubelet does. */
function reportPod(name: string, phase: string, state: object): Promise<unknown> {
  const container = { name: "app", image: "i", imageID: "", restartCount: 0, ready: false, state };
  const status = { phase, containerStatuses: [container] };
  return cluster.client.patch(resources.pods, ref(name), { status }, { subresource: "status" });
}

async function makeNode(): Promise<void> {
  await cluster.client.create<KubernetesObject>(resources.nodes, { metadata: { name: NODE } });
  const status = { conditions: [{ type: "Ready", status: "True", reason: "KubeletReady" }] };
  await cluster.client.patch(resources.nodes, { name: NODE }, { status }, { subresource: "status" });
}

/** The log of a deleted node is lost. */
const dropNode = () => cluster.client.delete(resources.nodes, { name: NODE });

async function running(project: string): Promise<{ name: string; podName: string; startedAt: string }> {
  const name = await makeJob(project, minute);
  await eventually(async () => (await job(name))?.spec?.suspend === false);
  const podName = await makePod(name);
  const startedAt = second();
  await reportPod(podName, "Running", { running: { startedAt } });
  await eventually(async () => (await run(name))?.status?.phase === "running");
  return { name, podName, startedAt };
}

describe("on a real apiserver", () => {
  test("an occurrence is admitted at its minute, charged in the ledger, and deleted", async () => {
    await makeNode();
    await makeProject("pminutely");
    beforeMinute();
    const { name, podName, startedAt } = await running("pminutely");
    expect(clock.now() >= minute).toBe(true);
    expect((await stateOf("pminutely")).activeRun).toBe(name);
    for (const object of [await run(name), await job(name), await pod(podName)]) {
      expect(object?.metadata.finalizers).toContain("slipway.dev/jobrun");
    }

    await dropNode();
    const finishedAt = second();
    await reportPod(podName, "Failed", {
      terminated: { exitCode: 3, reason: "Error", startedAt, finishedAt },
    });
    await eventually(async () => (await run(name))?.status?.chargedAt);
    const key = { organizationId: "alpha", projectId: "pminutely", id: name };
    const price = operator.catalog.jobPlans.find(({ plan }) => plan === "job-basic")?.pricePerMinute;
    expect(await findJobRun(ledger, key)).toMatchObject({
      status: "failed",
      billed_minutes: 1,
      price_per_minute: price,
      amount: price,
      started_at: new Date(startedAt),
      finished_at: new Date(finishedAt),
    });
    await eventually(async () => (await job(name)) === undefined);
    expect((await pod(podName))?.metadata.finalizers ?? []).not.toContain("slipway.dev/jobrun");
    expect(await stateOf("pminutely")).toMatchObject({ lastRun: { name, phase: "failed" } });
    expect((await stateOf("pminutely")).activeRun).toBeUndefined();
  });

  test("a cancelled run's pod is deleted with 30 s of grace", async () => {
    await makeNode();
    await makeProject("pcancel");
    beforeMinute();
    const { name, podName, startedAt } = await running("pcancel");
    const cancelRequestedAt = clock.now().toISOString();
    await cluster.client.patch(jobRunResource, ref(name), { spec: { cancelRequestedAt } });
    await eventually(async () => (await pod(podName))?.metadata.deletionTimestamp);
    expect((await pod(podName))?.metadata.deletionGracePeriodSeconds).toBe(30);
    await dropNode();
    await reportPod(podName, "Failed", {
      terminated: { exitCode: 143, reason: "Error", startedAt, finishedAt: second() },
    });
    await eventually(async () => (await run(name))?.status?.chargedAt);
    expect((await run(name))?.status).toMatchObject({ phase: "cancelled", billedMinutes: 1 });
  });

  test("a manual run is admitted once, and refused while it is active", async () => {
    await makeNode();
    await makeProject("pmanual", "0 0 1 1 *");
    const request = async (suffix: string) => {
      const name = jobRunName("pmanual", clock.now(), suffix);
      await cluster.client.create<JobRun>(jobRunResource, {
        apiVersion: "slipway.dev/v1alpha1",
        kind: "JobRun",
        metadata: ref(name),
        spec: { projectRef: { name: "pmanual" }, trigger: "manual", scheduledAt: clock.now().toISOString() },
      });
      return name;
    };
    const admitted = (name: string) => async () =>
      (await run(name))?.status?.conditions?.find(({ type }) => type === "Admitted");
    const first = await request("aa");
    expect(await eventually(admitted(first))).toMatchObject({ status: "True" });
    expect((await job(first))?.spec?.suspend).toBe(false);
    const second = await request("bb");
    expect(await eventually(admitted(second))).toMatchObject({ status: "False", reason: "Overlap" });
    expect(await job(second)).toBeUndefined();
    await dropNode();
  });

  test("closing the schedule is acknowledged, and a suspended Job of a closed schedule is deleted", async () => {
    await makeProject("pclosed");
    beforeMinute();
    const closedAt = clock.now().toISOString();
    await cluster.client.patch(projectResource, ref("pclosed"), { spec: { job: { closedAt } } });
    const acknowledged = await eventually(async () => (await stateOf("pclosed")).scheduleClosedAt);
    expect(acknowledged >= closedAt).toBe(true);
    const name = await makeJob("pclosed", minute);
    await eventually(async () => (await job(name)) === undefined);
    expect(await run(name)).toBeUndefined();
    expect((await stateOf("pclosed")).missed).toBeUndefined();
  });
});
