import type { ProjectSpec } from "@slipway/crds";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { startRun } from "./start.ts";

let harness: FakeHarness;
beforeAll(async () => {
  harness = await startFakeHarness();
});
afterAll(() => harness.close());

/** How a run of a job is refused where the platform runs no jobs. */
async function refusal(id: string, change: Partial<ProjectSpec>): Promise<unknown> {
  await harness.project("acme", id, change);
  const project = await harness.projects.find("acme", id);
  if (!project) {
    throw new Error(`${id} is not there`);
  }
  const catalog = { current: { ...harness.services.catalog.current, jobsEnabled: false } };
  return startRun(project, `${id}-r1-abcd`, { ...harness.services, catalog }, { limitMs: 100 }).catch(
    ({ status, code }: { status: number; code: string }) => [status, code],
  );
}

// Shows: docs/applications.md#conventions: order of refusal: 401, 429, 403, 404, 400, what the plan
it("is refused by what the project is before what the platform does not run", async () => {
  expect(await refusal("ppaused", { paused: true })).toEqual([409, "PROJECT_PAUSED"]);
  expect(await refusal("pidle", {})).toEqual([503, "SCHEDULED_JOBS_UNAVAILABLE"]);
});
