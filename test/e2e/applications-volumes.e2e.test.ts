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

async function runningProject() {
  const storage = { persistent: true, capacity: 1, dir_path_to_persist: "/data" };
  const envs = [{ name: "GREETING", value: "before" }];
  const project = await createProject(call, httpProject(uniqueName("volume"), { storage, envs }));
  made.push(project.project_id);
  await untilStatus(call, project.project_id, "running");
  return project;
}

const untilFailed = (id: string) =>
  eventually(async () => {
    const { last_deployment: last } = await readProject(call, id);
    expect(last?.status).toBe("failed");
    return last;
  });

// Each waits for the rollout's deadline, so they wait for it together.
describe.concurrent("a project with a volume", () => {
  // Shows: docs/applications.md#project-settings: image: with a volume, the old version serves until the
  test("an image that cannot be pulled costs no request, and the next one is run", async () => {
    const { project_id: id, domain } = await runningProject();
    const running = traffic(domain);
    const missing = `${stack.imageHttp.split("/")[0]}/no-such-image:1`;
    expect((await call("PATCH", `/v1/project/${id}/image`, { image: missing })).status).toBe(200);
    await untilStatus(call, id, "failing");
    expect((await untilFailed(id))?.message).toContain("image");
    const report = await running.stop();
    expect(report.failures).toEqual([]);
    expect(report.versions).toEqual(["v1"]);
    expect(report.sent).toBeGreaterThan(1_000);

    const next = { image: stack.imageHttpV2 };
    expect((await call("PATCH", `/v1/project/${id}/image`, next)).status).toBe(200);
    await untilStatus(call, id, "running");
    expect((await throughIngress(domain, "/")).text).toContain('"version":"v2"');
  });

  // Shows: docs/applications.md#project-settings: image: with a volume, the old version serves until the
  test("a version that does not start is replaced by the previous one automatically", async () => {
    const { project_id: id, domain } = await runningProject();
    // The Go runtime of the sample application refuses to start with it.
    const envs = [{ name: "GOMEMLIMIT", value: "no number" }];
    expect((await call("PATCH", `/v1/project/${id}/envs`, { envs })).status).toBe(200);
    await untilFailed(id);
    await eventually(async () =>
      expect(await throughIngress(domain, "/env/GREETING")).toMatchObject({ status: 200, text: "before" }),
    );
    expect((await readProject(call, id)).status).toBe("failing");
    const running = traffic(domain, "/env/GREETING");
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    expect((await running.stop()).failures).toEqual([]);
  });
});
