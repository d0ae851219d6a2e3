import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  type Project,
  readProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { type Counter, createCounter } from "./support/counter.ts";
import { eventually } from "./support/eventually.ts";
import { replaceLeader } from "./support/operator.ts";
import { namespaceOf, stack } from "./support/stack.ts";
import { traffic } from "./support/traffic.ts";

/** Pre-deploy commands. Each of them requests a path of its own of another project of the organization, whose log shows how often it ran. */

const call = apiClient();
const namespace = namespaceOf(stack.organization);
const made: string[] = [];
let counter: Counter;

beforeAll(async () => {
  counter = await createCounter(call);
  made.push(counter.id);
});
afterAll(() => deleteProjects(call, made));

interface Read extends Project {
  readonly last_deployment?: Project["last_deployment"] & {
    readonly pre_deploy?: {
      readonly status: string;
      readonly exit_code?: number;
      readonly last_lines?: string;
    };
  };
}
const read = (id: string): Promise<Read> => readProject(call, id);

/** Waits for the end of the project's newest deployment, which is another than the one before. */
const ended = (id: string, status: "succeeded" | "failed", before?: string) =>
  eventually(async () => {
    const { last_deployment: last } = await read(id);
    expect(last?.id).not.toBe(before);
    expect(last?.status).toBe(status);
    return last as NonNullable<typeof last>;
  });

/** As {@link ended}. Until the Job of its command has succeeded, no instance may run another image than these. */
async function endedBefore(
  id: string,
  status: "succeeded" | "failed",
  before: string | undefined,
  images: readonly string[],
) {
  const early: (string | undefined)[] = [];
  const last = await eventually(
    async () => {
      const found = await imagesOf(id);
      // The project's status says it later: by as much as another operator takes to lead, where the leading one is ended.
      const after = [...images, ...(await imagesOfSucceededCommands(id))];
      early.push(...found.filter((image) => image === undefined || !after.includes(image)));
      const deployment = (await read(id)).last_deployment;
      expect(deployment?.id).not.toBe(before);
      expect(deployment?.status).toBe(status);
      return deployment as NonNullable<typeof deployment>;
    },
    { every: 250 },
  );
  expect(early).toEqual([]);
  return last;
}

const runs = (id: string) =>
  eventually(async () => expect((await read(id)).last_deployment?.pre_deploy?.status).toBe("running"), {
    every: 200,
  });

async function patch(id: string, setting: string, body: object): Promise<void> {
  const answer = await call("PATCH", `/v1/project/${id}/${setting}`, body);
  expect(answer).toMatchObject({ status: 200 });
}

async function imagesOf(id: string): Promise<(string | undefined)[]> {
  const labelSelector = `slipway.dev/project=${id}`;
  const { items } = await cluster.core.listNamespacedPod({ namespace, labelSelector });
  return items.map(({ spec }) => spec?.containers[0]?.image);
}

/** A command runs in the image that it precedes. */
async function imagesOfSucceededCommands(id: string): Promise<(string | undefined)[]> {
  const labelSelector = `slipway.dev/pre-deploy=${id}`;
  const { items } = await cluster.batch.listNamespacedJob({ namespace, labelSelector });
  return items
    .filter(({ status }) => status?.succeeded === 1)
    .map(({ spec }) => spec?.template.spec?.containers[0]?.image);
}

// Shows: docs/applications.md#create: `config.pre_deploy_command`, `config.pre_deploy_timeout_seconds`: what
// Shows: docs/applications.md#pre-deploy-command: it has image, variables, `PORT`, network and the plan's
// Shows: docs/applications.md#pre-deploy-command: `last_deployment.pre_deploy` has `status`
// Shows: docs/applications.md#fields-of-answers: deployment record | `pre_deploy`: of the newest ten
// Shows: docs/applications.md#pre-deploy-command: another command or time limit is no deployment; where
// Shows: docs/applications.md#pre-deploy-command: a rollback does not run it, unless its body has
test("a migration runs before each version, and one that fails leaves the version before to serve", async () => {
  const name = uniqueName("migrates");
  const config = { pre_deploy_command: counter.command(name, 4_000, 0), pre_deploy_timeout_seconds: 60 };
  const { project_id: id, domain } = await createProject(call, httpProject(name, config));
  made.push(id);
  const first = await endedBefore(id, "succeeded", undefined, []);
  expect(first.pre_deploy).toMatchObject({
    status: "succeeded",
    exit_code: 0,
    last_lines: "v1 migrates\nends with 0, as it was asked to",
  });
  await untilStatus(call, id, "running");

  const failing = traffic(domain);
  await patch(id, "pre-deploy", { pre_deploy_command: counter.command(name, 4_000, 3) });
  await patch(id, "image", { image: stack.imageHttpV2 });
  const failed = await endedBefore(id, "failed", first.id, [stack.imageHttp]);
  expect(failed).toMatchObject({
    message: "The pre-deploy command ended with exit code 3.",
    pre_deploy: {
      status: "failed",
      exit_code: 3,
      last_lines: expect.stringMatching(/^v2 migrates\nends with 3/),
    },
  });
  expect((await read(id)).status).toBe("failing");
  await sleep(3_000);
  expect(await imagesOf(id)).toEqual([stack.imageHttp]);
  const without = await failing.stop();
  expect(without.failures).toEqual([]);
  expect(without.versions).toEqual(["v1"]);
  const history = await call<readonly { id: string; pre_deploy?: object }[]>(
    "GET",
    `/v1/project/${id}/historic/deployments`,
  );
  expect(history.body.data?.map((each) => [each.id, each.pre_deploy])).toEqual([
    [failed.id, failed.pre_deploy],
    [first.id, first.pre_deploy],
  ]);

  const deploying = traffic(domain);
  await patch(id, "pre-deploy", { pre_deploy_command: counter.command(name, 4_000, 0) });
  const second = await endedBefore(id, "succeeded", failed.id, [stack.imageHttp]);
  await sleep(2_000);
  const report = await deploying.stop();
  console.log(`${without.sent + report.sent} requests, ${report.failures.length} failed`);
  expect(report.failures).toEqual([]);
  expect(report.versions).toEqual(["v1", "v2"]);
  expect(await counter.reports(name)).toEqual(["v1", "v2", "v2"]);

  const back = `/v1/project/${id}/rollback`;
  expect((await call("POST", back, { deployment_id: first.id })).status).toBe(200);
  const third = await ended(id, "succeeded", second.id);
  expect(third.pre_deploy).toEqual({ status: "skipped" });
  expect(await counter.reports(name)).toHaveLength(3);
  const asked = { deployment_id: second.id, run_pre_deploy_command: true };
  expect((await call("POST", back, asked)).status).toBe(200);
  const fourth = await ended(id, "succeeded", third.id);
  expect(fourth.pre_deploy).toMatchObject({ status: "succeeded" });
  expect(await counter.reports(name)).toEqual(["v1", "v2", "v2", "v2"]);
});

// Shows: docs/applications.md#pre-deploy-command: a command that has not ended in time is sent SIGTERM
test("a command that does not end in time fails its deployment, with what it has written", async () => {
  const name = uniqueName("late");
  const config = { pre_deploy_command: counter.command(name, 600_000, 0), pre_deploy_timeout_seconds: 15 };
  const started = performance.now();
  const { project_id: id } = await createProject(call, httpProject(name, config));
  made.push(id);
  const failed = await ended(id, "failed");
  console.log(`it had failed after ${Math.round(performance.now() - started)} ms`);
  expect(failed).toMatchObject({
    message: "The pre-deploy command did not end within 15 seconds.",
    pre_deploy: { status: "failed", last_lines: expect.stringMatching(/^v1 migrates/) },
  });
  expect((await read(id)).status).toBe("failed");
  expect(await imagesOf(id)).toEqual([]);
  await patch(id, "pre-deploy", { pre_deploy_command: null });
  await untilStatus(call, id, "running");
  expect(await counter.reports(name)).toEqual(["v1"]);
});

// Shows: docs/applications.md#pre-deploy-command: it runs once for each deployment, also when the operator
test("a command runs exactly once though the operator is killed while it runs, and a change stops it first", async () => {
  const name = uniqueName("killed");
  const config = { pre_deploy_command: counter.command(name, 60_000, 0) };
  const { project_id: id } = await createProject(call, httpProject(name, config));
  made.push(id);
  await runs(id);
  await replaceLeader();
  await replaceLeader();
  expect(await imagesOf(id)).toEqual([]);
  expect((await read(id)).last_deployment?.pre_deploy?.status).toBe("running");
  const first = await ended(id, "succeeded");
  expect(await counter.reports(name)).toEqual(["v1"]);

  await patch(id, "pre-deploy", { pre_deploy_command: counter.command(name, 600_000, 0) });
  await patch(id, "image", { image: stack.imageHttpV2 });
  await runs(id);
  await patch(id, "pre-deploy", { pre_deploy_command: counter.command(name, 1_000, 0) });
  const labelSelector = `slipway.dev/pre-deploy=${id}`;
  let most = 0;
  const second = await eventually(
    async () => {
      const { items } = await cluster.core.listNamespacedPod({ namespace, labelSelector });
      most = Math.max(most, items.filter(({ status }) => status?.phase === "Running").length);
      const { last_deployment: last } = await read(id);
      expect(last?.id).not.toBe(first.id);
      expect(last?.status).toBe("succeeded");
      return last;
    },
    { every: 200 },
  );
  expect(second?.pre_deploy).toMatchObject({ status: "succeeded" });
  expect(most).toBe(1);
  expect(await counter.reports(name)).toEqual(["v1", "v2", "v2"]);
  const jobs = await cluster.batch.listNamespacedJob({ namespace, labelSelector });
  expect(jobs.items).toHaveLength(1);
  expect((await call("DELETE", `/v1/project/${id}`)).status).toBe(200);
  expect((await cluster.batch.listNamespacedJob({ namespace, labelSelector })).items).toEqual([]);
});
