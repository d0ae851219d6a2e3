import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { type JobRun, jobRunName, labels, minutePrice, type Project } from "@slipway/crds";
import { connectLedger, findJobRun, type Ledger, migrateToLatest, recordJobRuns } from "@slipway/ledger";
import { systemClock } from "@slipway/process";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import {
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  type TestOperator,
  untilUnchanged,
  whileServed,
} from "../../../../test/kit/operator/harness.ts";
import { makePod, serving } from "../../../../test/kit/operator/pods.ts";
import { JobPlayer } from "../../../../test/kit/operator/pre-deploy.ts";
import { exampleJob, exampleProject, exampleWorker } from "../../../../test/kit/operator/projects.ts";
import { startPostgres, type TestPostgres } from "../../../../test/kit/servers/postgresql.ts";
import { jobRunResource, projectResource } from "../../resources.ts";
import type { Job } from "./cluster.ts";

/** The whole operator on a real kube-apiserver and a real PostgreSQL; the test plays the controllers of Jobs and Deployments, and kubelets. */

const namespace = "slipway-org-alpha";
const ref = (name: string) => ({ namespace, name });
const image = (tag: string) => ({ url: `registry.example/team/app:${tag}`, isPublic: true });
const digest = (letter: string) => `sha256:${letter.repeat(64)}`;

interface Pods {
  metadata: { labels: Record<string, string>; finalizers: string[] };
  spec: {
    serviceAccountName?: string;
    automountServiceAccountToken?: boolean;
    containers: { image: string; command: string[]; env?: object[]; envFrom?: object[]; ports?: object[] }[];
  };
}
type FullJob = Job & { spec: { suspend?: boolean; activeDeadlineSeconds: number; template: Pods } };

let cluster: TestCluster;
let postgres: TestPostgres;
let ledger: Ledger;
let operator: TestOperator;
let player: JobPlayer;
let stopPlaying: () => Promise<void>;
/** Milliseconds by which the operator's clock is ahead. */
let aheadMs = 0;
let isLedgerAway = false;

beforeAll(async () => {
  [cluster, postgres] = await Promise.all([startCluster(), startPostgres()]);
  ledger = connectLedger({ url: postgres.url, applicationName: "test", maxConnections: 4 });
  await migrateToLatest(ledger);
  operator = await startOperator(cluster, {
    listOrganizations: async () => ["alpha"],
    clock: { ...systemClock, now: () => new Date(systemClock.now().getTime() + aheadMs) },
    runs: {
      record: async (rows) => {
        if (isLedgerAway) {
          throw new Error("the ledger is away");
        }
        return recordJobRuns(ledger, rows);
      },
    },
  });
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
  player = new JobPlayer(cluster.client, namespace, labels.oneOffRun);
  stopPlaying = player.play();
});
beforeEach(() => {
  aheadMs = 0;
  isLedgerAway = false;
  player.mayBegin = () => true;
  player.end = () => undefined;
});
afterAll(async () => {
  await stopPlaying?.();
  await operator?.stop();
  await ledger?.destroy();
  await postgres?.stop();
  await cluster?.stop();
});

const project = (name: string) => cluster.client.get<Project>(projectResource, ref(name));
const run = (name: string) => cluster.client.getOrUndefined<JobRun>(jobRunResource, ref(name));
const job = (name: string) => cluster.client.getOrUndefined<FullJob>(resources.jobs, ref(name));
const row = (id: string, projectId: string) => findJobRun(ledger, { organizationId: "alpha", projectId, id });
const condition = async (name: string, type: string) => {
  const found = (await run(name))?.status?.conditions?.find((one) => one.type === type);
  return found && `${found.status}/${found.reason}`;
};
const decided = (name: string) => eventually(() => condition(name, "Admitted"));
const phase = (name: string, wanted: string) =>
  eventually(async () => (await run(name))?.status?.phase === wanted);
const charged = (name: string) => eventually(async () => (await run(name))?.status?.chargedAt);

/** A project whose first version serves. */
async function served(name: string, spec: Partial<Project["spec"]> = {}): Promise<void> {
  await cluster.client.create<Project>(
    projectResource,
    exampleProject(ref(name), { image: image("1"), ...spec }),
  );
  await serve(name, "a");
}

/** What is rolled out serves, and has succeeded. */
async function serve(name: string, letter: string): Promise<void> {
  await eventually(() => exists(cluster.client, resources.deployments, ref(name)));
  const { url = "" } = (await project(name)).spec.image ?? {};
  await eventually(async () => (await project(name)).status?.deployments?.[0]?.settings.image?.url === url);
  await makePod(cluster.client, ref(name), serving(url, digest(letter)));
  await whileServed(cluster.client, ref(name), async () => {
    const newest = (await project(name)).status?.deployments?.[0];
    return newest?.status === "succeeded" && newest.image.digest === digest(letter);
  });
}

let requests = 0;
async function request(projectId: string, spec: Partial<JobRun["spec"]> = {}): Promise<string> {
  requests += 1;
  const now = systemClock.now();
  const name = jobRunName(projectId, now, `r${requests}`);
  await cluster.client.create<JobRun>(jobRunResource, {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "JobRun",
    metadata: ref(name),
    spec: {
      projectRef: { name: projectId },
      trigger: "manual",
      scheduledAt: now.toISOString(),
      command: ["node", "task.js", "$HOME"],
      ...spec,
    },
  });
  return name;
}

// Shows: docs/applications.md#one-off-runs: it has image, variables, resources and confinement of an instance
// Shows: docs/applications.md#one-off-runs: it costs a sixtieth of the hour's price of its plan
test("a command runs once in the image that serves, beside the instances, and is charged by the plan", async () => {
  const secret = { metadata: { name: "pshop-env", namespace }, stringData: { MODE: "one" } };
  await cluster.client.create<KubernetesObject>(resources.secrets, secret as KubernetesObject);
  await served("pshop", { envsFrom: [{ name: "pshop-env" }] });
  const name = await request("pshop", { timeoutSeconds: 60 });
  await phase(name, "running");
  const { spec, metadata } = (await job(name)) as FullJob;
  const [container] = spec.template.spec.containers;
  expect(container).toMatchObject({
    image: `registry.example/team/app:1@${digest("a")}`,
    command: ["node", "task.js", "$$HOME"],
    env: [{ name: "PORT", value: "8080" }],
    envFrom: [{ secretRef: { name: "pshop-env" } }],
  });
  expect(container).not.toHaveProperty("ports");
  expect(container).not.toHaveProperty("readinessProbe");
  expect(spec.template.spec.automountServiceAccountToken).toBe(false);
  expect(spec.activeDeadlineSeconds).toBe(600 + 60 + 600);
  for (const own of [metadata.labels, spec.template.metadata.labels]) {
    expect(own).toMatchObject({ [labels.oneOffRun]: "pshop", [labels.organization]: "alpha" });
    expect(own).not.toHaveProperty(labels.project);
  }
  const [deployment] = (await project("pshop")).status?.deployments ?? [];
  expect((await run(name))?.status).toMatchObject({
    deployment: deployment?.id,
    image: { reference: image("1").url, digest: digest("a") },
    plan: "basic",
  });

  player.end = () => ({ exitCode: 3 });
  await charged(name);
  const hourly = operator.catalog.httpPlans.find(({ plan }) => plan === "basic")?.prices.hourly ?? "";
  expect((await run(name))?.status).toMatchObject({ phase: "failed", exitCode: 3, billedMinutes: 1 });
  expect(await row(name, "pshop")).toMatchObject({
    status: "failed",
    trigger: "manual",
    billed_minutes: 1,
    plan: "basic",
    price_per_minute: minutePrice(hourly),
    amount: minutePrice(hourly),
    metrics: { exitCode: 3 },
  });
  await eventually(async () => (await job(name)) === undefined);
  expect(player.begun.filter((one) => one === name)).toHaveLength(1);
  expect((await project("pshop")).status).not.toHaveProperty("job");
  // Its command and its exit code are kept, and nothing more is written.
  await untilUnchanged(cluster);
  expect((await run(name))?.spec.command).toEqual(["node", "task.js", "$HOME"]);
});

// Shows: docs/applications.md#one-off-runs: the image and the variables are those of the version that serves
test("while another version is rolled out, a run has the image of the one that serves, and keeps it", async () => {
  await served("proll");
  player.mayBegin = () => false;
  await cluster.client.patch(projectResource, ref("proll"), { spec: { image: image("2") } });
  await eventually(async () => (await project("proll")).status?.deployments?.[0]?.status === "in_progress");
  const before = await request("proll");
  expect(await decided(before)).toBe("True/Admitted");
  await serve("proll", "b");
  const after = await request("proll");
  expect(await decided(after)).toBe("True/Admitted");
  const imageOf = async (name: string) => (await job(name))?.spec.template.spec.containers[0]?.image;
  expect(await imageOf(before)).toBe(`registry.example/team/app:1@${digest("a")}`);
  expect(await imageOf(after)).toBe(`registry.example/team/app:2@${digest("b")}`);
});

test("a worker's command has no port", async () => {
  await cluster.client.create<Project>(projectResource, exampleWorker(ref("pworker"), { image: image("1") }));
  await serve("pworker", "c");
  const name = await request("pworker");
  expect(await decided(name)).toBe("True/Admitted");
  expect((await job(name))?.spec.template.spec.containers[0]).not.toHaveProperty("env");
});

// Shows: docs/applications.md#one-off-runs: a project that is paused, or of which nothing has ever
test("what has no version, is paused, is no application or has its time over runs nothing", async () => {
  await cluster.client.create<Project>(projectResource, exampleProject(ref("pnever"), { image: image("1") }));
  expect(await decided(await request("pnever"))).toBe("False/NotDeployed");
  await served("ppaused");
  await cluster.client.patch(projectResource, ref("ppaused"), { spec: { paused: true } });
  expect(await decided(await request("ppaused"))).toBe("False/Paused");
  await cluster.client.create<Project>(
    projectResource,
    exampleJob(ref("pjob"), { job: { cron: "0 0 1 1 *" } }),
  );
  expect(await decided(await request("pjob"))).toBe("False/NotAccepted");
  const orphan = await request("pmissing");
  await eventually(async () => (await run(orphan)) === undefined);
  expect((await cluster.client.listAll(resources.jobs, { namespace })).length).toBe(
    (await player.jobs("proll")).length + (await player.jobs("pworker")).length,
  );
});

// Shows: docs/applications.md#one-off-runs: 5 of a project (1 on a plan that costs nothing) and 20
test("a project has at most five that are active", async () => {
  await served("pmany");
  const names: string[] = [];
  for (let count = 0; count < 5; count += 1) {
    names.push(await request("pmany"));
  }
  for (const name of names) {
    expect(await decided(name)).toBe("True/Admitted");
  }
  expect(await decided(await request("pmany"))).toBe("False/TooManyRuns");
  player.end = () => ({ exitCode: 0 });
  for (const name of names) {
    await charged(name);
  }
  expect(await decided(await request("pmany"))).toBe("True/Admitted");
});

// Shows: docs/applications.md#one-off-runs: cancelling is that of [job runs]
// Shows: docs/applications.md#one-off-runs: `status`: `pending` until its container has started
test("a cancelled run is stopped and billed up to the request; one that has not started is billed nothing", async () => {
  await served("pcancel");
  const name = await request("pcancel");
  await phase(name, "running");
  const cancelRequestedAt = systemClock.now().toISOString();
  await cluster.client.patch(jobRunResource, ref(name), { spec: { cancelRequestedAt } });
  await charged(name);
  expect((await run(name))?.status).toMatchObject({ phase: "cancelled", billedMinutes: 1, exitCode: 143 });
  expect((await row(name, "pcancel"))?.status).toBe("cancelled");

  player.mayBegin = () => false;
  const waiting = await request("pcancel");
  expect(await decided(waiting)).toBe("True/Admitted");
  await cluster.client.patch(jobRunResource, ref(waiting), { spec: { cancelRequestedAt } });
  await phase(waiting, "cancelled");
  expect(await condition(waiting, "Finished")).toBe("False/Cancelled");
  await eventually(async () => (await job(waiting)) === undefined);
  expect(await row(waiting, "pcancel")).toBeUndefined();
  expect(player.begun).not.toContain(waiting);
});

// Shows: docs/applications.md#one-off-runs: `timeout_seconds`, 10 to 3,600
// Shows: docs/applications.md#one-off-runs: one whose container does not start within ten minutes
test("a run ends by its limit, and one whose container never starts by that of its start", async () => {
  await served("plimit");
  const name = await request("plimit", { timeoutSeconds: 10 });
  await phase(name, "running");
  await charged(name);
  expect((await run(name))?.status).toMatchObject({ phase: "deadline_exceeded", billedMinutes: 1 });

  player.mayBegin = () => false;
  const stuck = await request("plimit");
  expect(await decided(stuck)).toBe("True/Admitted");
  aheadMs = 601_000;
  await cluster.client.patch(jobRunResource, ref(stuck), { metadata: { annotations: { test: "wake" } } });
  await eventually(async () => (await condition(stuck, "Finished")) === "False/NeverStarted");
  await eventually(async () => (await job(stuck)) === undefined);
  expect((await run(stuck))?.status).not.toHaveProperty("phase");
  expect(await row(stuck, "plimit")).toBeUndefined();
});

// Shows: docs/applications.md#one-off-runs: deletion of the project cancels its runs
test("deleting the project ends its runs and charges them first", async () => {
  await served("pgone");
  player.end = (_, of) => (of === first ? { exitCode: 0 } : undefined);
  const first = await request("pgone");
  await charged(first);
  const second = await request("pgone");
  await phase(second, "running");
  await cluster.client.delete(projectResource, ref("pgone"));
  await eventually(async () => !(await cluster.client.getOrUndefined(projectResource, ref("pgone"))));
  expect(await run(first)).toBeUndefined();
  expect(await run(second)).toBeUndefined();
  expect((await row(second, "pgone"))?.status).toBe("cancelled");
  expect(await player.jobs("pgone")).toEqual([]);
});

// Shows: docs/applications.md#one-off-runs: deletion of the project cancels its runs
test("while the ledger is away, a project that is deleted has neither routes nor instances, and waits for its runs", async () => {
  await served("paway");
  const name = await request("paway");
  await phase(name, "running");
  expect(await exists(cluster.client, resources.ingresses, ref("paway"))).toBe(true);
  isLedgerAway = true;
  await cluster.client.delete(projectResource, ref("paway"));
  await eventually(async () => !(await exists(cluster.client, resources.ingresses, ref("paway"))));
  await eventually(async () => !(await exists(cluster.client, resources.deployments, ref("paway"))));
  await phase(name, "cancelled");
  expect((await run(name))?.status).not.toHaveProperty("chargedAt");
  expect((await project("paway")).metadata.deletionTimestamp).toBeDefined();
  isLedgerAway = false;
  await eventually(async () => !(await cluster.client.getOrUndefined(projectResource, ref("paway"))));
  expect((await row(name, "paway"))?.status).toBe("cancelled");
});
