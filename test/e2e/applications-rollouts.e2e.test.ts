import { afterAll, describe, expect, test } from "vitest";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  readProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { eventually } from "./support/eventually.ts";
import { throughIngress } from "./support/ingress.ts";
import { stack } from "./support/stack.ts";
import { traffic } from "./support/traffic.ts";

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

async function runningProject(config: Record<string, unknown> = {}) {
  const project = await createProject(call, httpProject(uniqueName("rollout"), config));
  made.push(project.project_id);
  await untilStatus(call, project.project_id, "running");
  return project;
}

interface DeploymentRecord {
  readonly id: string;
  readonly project_id: string;
  readonly updated_image: boolean;
  readonly created_at: string;
  readonly status?: string;
}

const deployments = async (id: string): Promise<readonly DeploymentRecord[]> => {
  const answer = await call<DeploymentRecord[]>("GET", `/v1/project/${id}/historic/deployments`);
  expect(answer.status).toBe(200);
  return answer.body.data ?? [];
};

/** The newest deployment has this outcome, in the project and in the history alike. */
const deployed = (id: string, status: string) =>
  eventually(async () => {
    const { last_deployment: last } = await readProject(call, id);
    expect(last?.status).toBe(status);
    const [newest] = await deployments(id);
    expect(newest).toMatchObject({ id: last?.id, project_id: id, status });
    return newest as DeploymentRecord;
  });

/** Changes a running project while 20 requests a second come in; every one must be answered. */
async function changeUnderTraffic(id: string, domain: string, change: () => Promise<{ status: number }>) {
  const before = (await readProject(call, id)).last_deployment?.id;
  const running = traffic(domain);
  expect((await change()).status).toBe(200);
  await eventually(async () => {
    const project = await readProject(call, id);
    expect(project.last_deployment?.id).not.toBe(before);
    expect(project.status).toBe("running");
  });
  const report = await running.stop();
  expect(report.failures).toEqual([]);
  expect(report.sent).toBeGreaterThan(20);
  return report;
}

describe.concurrent("a rollout loses no request", () => {
  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/envs` | `message`; the whole list is
  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/image` | `message`; a new deployment
  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/plan` | `data`: `plan`, `payment_mode`
  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id/historic/deployments` | the deployments
  test("of an image, of variables and of a plan, with 20 requests a second", async () => {
    const { project_id: id, domain } = await runningProject();
    const image = await changeUnderTraffic(id, domain, () =>
      call("PATCH", `/v1/project/${id}/image`, { image: stack.imageHttpV2 }),
    );
    expect(image.versions).toEqual(["v1", "v2"]);
    expect((await deployed(id, "succeeded")).updated_image).toBe(true);

    await changeUnderTraffic(id, domain, () =>
      call("PATCH", `/v1/project/${id}/envs`, { envs: [{ name: "GREETING", value: "hello" }] }),
    );
    // An old pod serves until the ingress has received that it terminates.
    await eventually(async () =>
      expect(await throughIngress(domain, "/env/GREETING")).toMatchObject({ status: 200, text: "hello" }),
    );
    expect((await deployed(id, "succeeded")).updated_image).toBe(false);

    await changeUnderTraffic(id, domain, () => call("PATCH", `/v1/project/${id}/plan`, { plan: "premium" }));
    expect(await readProject(call, id)).toMatchObject({ plan: "premium", status: "running" });
    expect(await deployments(id)).toHaveLength(4);
  });
});

describe.concurrent("a version that cannot start", () => {
  // Shows: docs/applications.md#endpoints: `POST /v1/project/:id/rollback` | `data`: `project_id`
  // Shows: docs/applications.md#states: `failing` | something is wrong, and it is retried or the old
  // Shows: docs/applications.md#fields-of-answers: single project | optional fields where known
  // Shows: docs/applications.md#project-settings: image: the old version serves until the new one does
  test("of an image: the old one serves, the project is failing, and a rollback repairs it", async () => {
    const { project_id: id, domain } = await runningProject();
    const good = await deployed(id, "succeeded");
    const running = traffic(domain);
    const registry = stack.imageHttp.split("/")[0];
    const broken = `${registry}/no-such-image:1`;
    expect((await call("PATCH", `/v1/project/${id}/image`, { image: broken })).status).toBe(200);
    await untilStatus(call, id, "failing");
    await deployed(id, "failed");
    expect(await readProject(call, id)).toMatchObject({
      status: "failing",
      last_deployment: { status: "failed", message: expect.stringContaining("image") },
    });

    const back = await call("POST", `/v1/project/${id}/rollback`, { deployment_id: good.id });
    expect(back.status).toBe(200);
    await untilStatus(call, id, "running");
    await deployed(id, "succeeded");
    const report = await running.stop();
    expect(report.failures).toEqual([]);
    expect(report.versions).toEqual(["v1"]);
    expect((await readProject(call, id)).image?.url).toBe(stack.imageHttp);
  });

  // Shows: docs/applications.md#project-settings: envs: all change in one deployment, never a mixture
  test("of variables: the old ones serve, and a rollback restores them", async () => {
    const envs = [{ name: "GREETING", value: "before" }];
    const { project_id: id, domain } = await runningProject({ envs });
    const good = await deployed(id, "succeeded");
    const running = traffic(domain, "/env/GREETING");
    // The Go runtime of the sample application refuses to start with it.
    const broken = [
      { name: "GREETING", value: "after" },
      { name: "GOMEMLIMIT", value: "no number" },
    ];
    expect((await call("PATCH", `/v1/project/${id}/envs`, { envs: broken })).status).toBe(200);
    await untilStatus(call, id, "failing");
    expect(await throughIngress(domain, "/env/GREETING")).toMatchObject({ status: 200, text: "before" });

    const back = await call("POST", `/v1/project/${id}/rollback`, { deployment_id: good.id });
    expect(back.status).toBe(200);
    await untilStatus(call, id, "running");
    expect((await running.stop()).failures).toEqual([]);
    expect((await call("GET", `/v1/project/${id}/envs`)).body.data).toEqual(envs);
  });

  // Shows: docs/applications.md#project-settings: rollback: image (by its digest), command, port, variables
  test("of a plan is reverted by a rollback, and an unknown deployment is not found", async () => {
    const { project_id: id } = await runningProject();
    const good = await deployed(id, "succeeded");
    expect((await call("PATCH", `/v1/project/${id}/plan`, { plan: "premium" })).status).toBe(200);
    await eventually(async () => expect(await deployments(id)).toHaveLength(2));
    const back = await call("POST", `/v1/project/${id}/rollback`, { deployment_id: good.id });
    expect(back.status).toBe(200);
    await eventually(async () =>
      expect(await readProject(call, id)).toMatchObject({ plan: "basic", status: "running" }),
    );
    const unknown = await call("POST", `/v1/project/${id}/rollback`, { deployment_id: "no-such-deployment" });
    expect(unknown).toMatchObject({ status: 404, body: { code: "DEPLOYMENT_NOT_FOUND" } });
  });
});
