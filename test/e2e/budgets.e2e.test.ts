/** A hard cap on the stack: one run of a job reaches a tiny budget, projects are paused, and more of it resumes them. */
import { afterAll, beforeAll, expect, test } from "vitest";
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
import { deleteJobs, HARDLY_EVER, Job } from "./support/jobs.ts";
import { createOrganization } from "./support/organization.ts";

const BUDGET = "/v1/organization/budget";
/** A minute in which the operator compares, and a margin for a busy machine. */
const ROUND_MS = 180_000;

let call: ReturnType<typeof apiClient>;
let job: Job;
let id: string;
beforeAll(async () => {
  call = apiClient((await createOrganization("Budgets")).api_key);
  job = await Job.create(call, { name: uniqueName("capped"), script: "true" });
  expect((await job.schedule(HARDLY_EVER)).status).toBe(200);
  id = (await createProject(call, httpProject(uniqueName("capped")))).project_id;
  await untilStatus(call, id, "running");
}, 180_000);
afterAll(async () => {
  await call("DELETE", BUDGET);
  await deleteJobs([job]);
  await deleteProjects(call, [id]);
});

interface Budget {
  readonly spent: string;
  readonly exhausted: boolean;
  readonly reached: readonly { threshold: number }[];
}
const paused = async (project: string) =>
  ((await readProject(call, project)) as { paused_by?: string }).paused_by === "budget";

// Shows: docs/budgets.md#the-hard-cap: at 100 % | every project
// Shows: docs/budgets.md#the-hard-cap: a project that it paused | has `paused_by: budget`
test(
  "a run that reaches the budget has everything paused, and a larger budget resumes it",
  async () => {
    expect((await call("PUT", BUDGET, { amount: "0.000001", hard_cap: true })).status).toBe(200);
    expect((await job.start()).status).toBe(202);
    const budget = await eventually(
      async () => {
        const { data } = (await call<Budget>("GET", BUDGET)).body;
        expect(data?.reached).toHaveLength(3);
        return data;
      },
      { within: ROUND_MS },
    );
    expect(budget).toMatchObject({ exhausted: true });
    await eventually(async () => expect([await paused(id), await paused(job.id)]).toEqual([true, true]), {
      within: ROUND_MS,
    });
    await untilStatus(call, id, "stopped");
    const refused = await call("POST", `/v1/project/${id}/resume`);
    expect([refused.status, refused.body.code]).toEqual([402, "BUDGET_EXHAUSTED"]);
    expect((await job.start()).status).toBe(402);
    expect((await call("PUT", BUDGET, { amount: "1000000", hard_cap: true })).status).toBe(200);
    await untilStatus(call, id, "running");
    await eventually(async () => expect([await paused(id), await paused(job.id)]).toEqual([false, false]), {
      within: ROUND_MS,
    });
  },
  ROUND_MS * 4,
);
