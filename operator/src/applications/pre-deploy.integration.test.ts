import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import type { Deployment, Project } from "@slipway/crds";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import {
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  untilUnchanged,
  whileServed,
} from "../../../test/kit/operator/harness.ts";
import { makePod, serving } from "../../../test/kit/operator/pods.ts";
import { JobPlayer } from "../../../test/kit/operator/pre-deploy.ts";
import { exampleProject, exampleWorker } from "../../../test/kit/operator/projects.ts";
import { projectResource } from "../resources.ts";

/** An operator on a real apiserver; the test plays the controller of Jobs, their pods and the instances. */

const namespace = "slipway-org-alpha";
const ref = (name: string) => ({ namespace, name });
const image = (tag: string) => ({ url: `registry.example/team/app:${tag}`, isPublic: true });
const digest = (letter: string) => `sha256:${letter.repeat(64)}`;
const HASH = "slipway.dev/settings-hash";
const preDeployCommand = ["node", "migrate.js", "$HOME"];

interface Template {
  metadata: { annotations: Record<string, string> };
  spec: { containers: { image: string }[] };
}

let cluster: TestCluster;
let operator: Awaited<ReturnType<typeof startOperator>>;
let player: JobPlayer;
let stopPlaying: () => Promise<void>;

beforeAll(async () => {
  cluster = await startCluster();
  operator = await startOperator(cluster, { listOrganizations: async () => ["alpha"] });
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
  player = new JobPlayer(cluster.client, namespace);
  stopPlaying = player.play();
});
beforeEach(() => {
  player.end = () => ({ exitCode: 0 });
});
afterAll(async () => {
  await stopPlaying?.();
  await operator?.stop();
  await cluster?.stop();
});

const get = (name: string) => cluster.client.get<Project>(projectResource, ref(name));
const patch = (name: string, spec: Partial<Record<keyof Project["spec"], unknown>>) =>
  cluster.client.patch(projectResource, ref(name), { spec });
const newest = async (name: string): Promise<Deployment | undefined> =>
  (await get(name)).status?.deployments?.[0];
const begun = (name: string) => player.begun.filter((job) => job.startsWith(`${name}-`));

/** The Deployment's template; undefined without one. */
async function template(name: string): Promise<Template | undefined> {
  const live = await cluster.client.getOrUndefined<KubernetesObject & { spec: { template: Template } }>(
    resources.deployments,
    ref(name),
  );
  return live?.spec.template;
}

/** The image that it runs, without a digest. */
const templateImage = async (name: string): Promise<string | undefined> =>
  (await template(name))?.spec.containers[0]?.image.replace(/@.*/, "");

/** Waits for the newest deployment to be so. */
const until = (name: string, status: Deployment["status"], tag: string) =>
  eventually(async () => {
    const deployment = await newest(name);
    return deployment?.status === status && deployment.settings.image?.url.endsWith(tag) && deployment;
  });

/** A project whose first version serves. */
async function create(name: string, spec: Partial<Project["spec"]> = {}): Promise<void> {
  const project = exampleProject(ref(name), { image: image("1"), preDeployCommand, ...spec });
  await cluster.client.create<Project>(projectResource, project);
  await eventually(() => exists(cluster.client, resources.deployments, ref(name)));
  await serve(name);
}

/** Every instance of the Deployment's template serves, and the newest deployment has succeeded. */
async function serve(name: string): Promise<void> {
  // The status follows what was applied.
  const { settings } = await eventually(async () => {
    const deployment = await newest(name);
    const hash = (await template(name))?.metadata.annotations[HASH];
    return deployment !== undefined && deployment.settingsHash === hash && deployment;
  });
  const { url = "" } = settings.image ?? {};
  await makePod(cluster.client, ref(name), serving(url, digest(url.slice(-1))));
  await whileServed(cluster.client, ref(name), async () => (await newest(name))?.status === "succeeded");
}

test("the first instances begin once the command has succeeded, in the same image with the same variables", async () => {
  let isOver = false;
  player.end = () => (isOver ? { exitCode: 0, message: "unread" } : undefined);
  await cluster.client.create(resources.secrets, {
    metadata: ref("first-env-0123456789ab"),
    stringData: { COLOUR: "blue" },
  } as KubernetesObject);
  const spec = { image: image("1"), preDeployCommand, envsFrom: [{ name: "first-env-0123456789ab" }] };
  await cluster.client.create<Project>(projectResource, exampleProject(ref("first"), spec));
  const running = await eventually(async () => {
    const deployment = await newest("first");
    return deployment?.preDeploy?.status === "running" && deployment;
  });
  expect(running).toMatchObject({ status: "in_progress", preDeploy: { status: "running" } });
  const { status } = await get("first");
  expect(status?.phase).toBe("creating");
  expect(status?.conditions?.find(({ type }) => type === "Ready")).toMatchObject({
    status: "False",
    reason: "RunningPreDeploy",
    message: "The pre-deploy command is running.",
  });
  await untilUnchanged(cluster);
  expect(await templateImage("first")).toBeUndefined();
  const [job] = await player.jobs("first");
  expect(job?.metadata?.labels).not.toHaveProperty("slipway.dev/project");
  expect(job?.spec.template.spec).toMatchObject({
    restartPolicy: "Never",
    activeDeadlineSeconds: 600,
    containers: [
      {
        image: image("1").url,
        command: ["node", "migrate.js", "$$HOME"],
        envFrom: [{ secretRef: { name: "first-env-0123456789ab" } }],
        terminationMessagePolicy: "FallbackToLogsOnError",
      },
    ],
  });
  isOver = true;
  await eventually(async () => (await templateImage("first")) === image("1").url);
  await serve("first");
  expect(begun("first")).toHaveLength(1);
  const deployment = await newest("first");
  expect(deployment?.preDeploy).toMatchObject({ status: "succeeded", exitCode: 0 });
  expect(deployment).not.toHaveProperty("message");
});

// Shows: docs/applications.md#pre-deploy-command: scaling, pausing and resuming do not run it; another
test("one that fails leaves the version before as it is, and the next change tries again", async () => {
  await create("fails");
  player.end = () => ({ exitCode: 3, message: "relation \u001b[1morders\u001b[0m exists\n" });
  await patch("fails", { image: image("2") });
  const failed = await until("fails", "failed", "2");
  expect(failed).toMatchObject({
    message: "The pre-deploy command ended with exit code 3.",
    preDeploy: { status: "failed", exitCode: 3, lastLines: "relation orders exists" },
  });
  const { status } = await get("fails");
  expect(status?.phase).toBe("failing");
  expect(status?.conditions?.find(({ type }) => type === "RolloutFailed")).toMatchObject({
    status: "True",
    reason: "PreDeployFailed",
  });
  expect(status?.conditions?.find(({ type }) => type === "WorkloadAvailable")?.status).toBe("True");
  expect(await templateImage("fails")).toBe(image("1").url);
  const writes = await untilUnchanged(cluster);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  expect(await untilUnchanged(cluster)).toBe(writes);
  // Scaling is no deployment; the version before is scaled.
  await patch("fails", { instances: 2 });
  await eventually(async () => {
    const live = await cluster.client.get<KubernetesObject & { spec: { replicas: number } }>(
      resources.deployments,
      ref("fails"),
    );
    return live.spec.replicas === 2;
  });
  expect(begun("fails")).toHaveLength(2);
  player.end = () => ({ exitCode: 0 });
  await patch("fails", { instances: 1, preDeployCommand: ["node", "migrate.js", "--force"] });
  await eventually(async () => (await templateImage("fails")) === image("2").url);
  await serve("fails");
  expect(begun("fails")).toHaveLength(3);
  // Another port is a deployment.
  await patch("fails", { port: 8081 });
  await eventually(async () => begun("fails").length === 4);
  await serve("fails");
  expect(await player.jobs("fails")).toHaveLength(1);
});

// Shows: docs/applications.md#pre-deploy-command: the next deployment runs it again: another
test("a failed one keeps what has failed for good, though the version that serves comes back as wanted", async () => {
  await create("returns");
  player.end = () => ({ exitCode: 1 });
  await patch("returns", { image: image("2") });
  await until("returns", "failed", "2");
  await patch("returns", { image: image("1") });
  // The settings are those that serve: nevertheless the command of this deployment decides.
  const failed = await until("returns", "failed", "1");
  expect(failed.preDeploy).toMatchObject({ status: "failed", exitCode: 1 });
  player.end = () => ({ exitCode: 0 });
  await patch("returns", { restartedAt: "2026-01-01T00:00:00Z" });
  await until("returns", "in_progress", "1");
  await serve("returns");
  expect(begun("returns")).toHaveLength(4);
});

// Shows: docs/applications.md#pre-deploy-command: a change while it runs stops it, and the command
test("a change while it runs stops the outdated one before the next begins", async () => {
  await create("changes");
  player.end = (url) => (url.endsWith(":3") ? { exitCode: 0 } : undefined);
  await patch("changes", { image: image("2") });
  await eventually(async () => begun("changes").length === 2);
  await patch("changes", { image: image("3") });
  await eventually(async () => (await templateImage("changes")) === image("3").url);
  await serve("changes");
  const statuses = (await get("changes")).status?.deployments?.map((each) => [
    each.status,
    each.preDeploy?.status,
  ]);
  expect(statuses).toEqual([
    ["succeeded", "succeeded"],
    ["superseded", "running"],
    ["succeeded", "succeeded"],
  ]);
  expect(player.mostConcurrent).toBe(1);
  expect(await player.jobs("changes")).toHaveLength(1);
});

// Shows: docs/applications.md#pre-deploy-command: a change while it runs stops it, and the command
test("a pause stops it, and it runs when the project resumes; one that has succeeded is not repeated", async () => {
  await create("pauses");
  player.end = () => undefined;
  await patch("pauses", { image: image("2") });
  await eventually(async () => begun("pauses").length === 2);
  await patch("pauses", { paused: true });
  await eventually(async () => (await player.jobs("pauses")).length === 0);
  await eventually(async () => (await newest("pauses"))?.status === "superseded");
  expect(await templateImage("pauses")).toBe(image("1").url);
  player.end = () => ({ exitCode: 0 });
  await patch("pauses", { paused: false });
  await eventually(async () => (await templateImage("pauses")) === image("2").url);
  expect(begun("pauses")).toHaveLength(3);
  // Its rollout is cut short now, and its command is not.
  await patch("pauses", { paused: true });
  await eventually(async () => (await newest("pauses"))?.status === "superseded");
  await patch("pauses", { paused: false });
  await serve("pauses");
  expect(begun("pauses")).toHaveLength(3);
});

test("what a paused project is changed to waits for its command, too", async () => {
  await create("rests");
  await patch("rests", { paused: true });
  await eventually(async () => (await get("rests")).status?.desiredInstances === 0);
  await patch("rests", { image: image("2") });
  const { generation } = (await get("rests")).metadata;
  await eventually(async () => (await get("rests")).status?.observedGeneration === generation);
  expect(await templateImage("rests")).toBe(image("1").url);
  expect(begun("rests")).toHaveLength(1);
  await patch("rests", { paused: false });
  await eventually(async () => (await templateImage("rests")) === image("2").url);
  expect(begun("rests")).toHaveLength(2);
});

test("a rollback skips it while image and variables are those of the earlier deployment", async () => {
  await create("back");
  await patch("back", { image: image("2") });
  await eventually(async () => (await templateImage("back")) === image("2").url);
  await serve("back");
  const [, first] = (await get("back")).status?.deployments ?? [];
  const restartedAt = "2026-01-01T00:00:00Z";
  const preDeploySkip = { deployment: first?.id ?? "", restartedAt };
  const pinned = { ...image("1"), digest: first?.image.digest };
  await patch("back", { image: pinned, restartedAt, preDeploySkip });
  await eventually(async () => (await templateImage("back")) === image("1").url);
  await serve("back");
  expect((await newest("back"))?.preDeploy?.status).toBe("skipped");
  expect(begun("back")).toHaveLength(2);
  await patch("back", { image: { ...image("3"), digest: null } });
  await eventually(async () => (await templateImage("back")) === image("3").url);
  expect(begun("back")).toHaveLength(3);
});

test("a worker has one, and a project that is deleted while it runs leaves nothing", async () => {
  player.end = () => undefined;
  const spec = { image: image("1"), preDeployCommand, preDeployTimeoutSeconds: 10 };
  await cluster.client.create<Project>(projectResource, exampleWorker(ref("worker"), spec));
  await eventually(async () => begun("worker").length === 1);
  const [job] = await player.jobs("worker");
  expect(job?.spec.template.spec).toMatchObject({ activeDeadlineSeconds: 10 });
  await cluster.client.delete(projectResource, ref("worker"));
  await eventually(async () => !(await cluster.client.getOrUndefined(projectResource, ref("worker"))));
  expect(await player.jobs("worker")).toEqual([]);
});
