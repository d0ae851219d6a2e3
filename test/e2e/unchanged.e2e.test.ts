import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isLong } from "../kit/long.ts";
import { apiClient, type CreatedProject, deleteProjects, httpProject } from "./support/api.ts";
import { auditPosition, writesSince } from "./support/audit.ts";
import { eventually } from "./support/eventually.ts";
import { killOperator, leader, operatorAccount } from "./support/operator.ts";

const seconds = isLong ? 60 : 10;
const projects = isLong ? 200 : 3;
const call = apiClient();

/** What the operator writes in a while of watching; writes of earlier changes have to end first. */
async function writesWhileUnchanged(): Promise<string[]> {
  await eventually(
    async () => {
      const start = await auditPosition();
      await sleep(5_000);
      expect(await writesSince(start, operatorAccount)).toEqual([]);
    },
    { within: 90_000 },
  );
  const start = await auditPosition();
  await sleep(seconds * 1_000);
  return writesSince(start, operatorAccount);
}

describe(`an unchanged platform of ${projects} projects`, () => {
  const ids: string[] = [];

  beforeAll(async () => {
    const before = await auditPosition();
    for (let index = 0; index < projects; index += 1) {
      const created = await call<CreatedProject>("POST", "/v1/project", httpProject(`unchanged-${index}`));
      expect(created.status).toBe(201);
      ids.push((created.body.data as CreatedProject).project_id);
    }
    await eventually(
      async () => {
        for (const id of ids) {
          const read = await call<{ status: string }>("GET", `/v1/project/${id}`);
          expect(read.body.data?.status).toBe("running");
        }
      },
      { within: 600_000, every: 2_000 },
    );
    // Were the operator's writes not in the log, their absence below would say nothing.
    expect((await writesSince(before, operatorAccount)).length).toBeGreaterThan(projects);
  }, 900_000);

  afterAll(async () => {
    await deleteProjects(call, ids);
  }, 600_000);

  test.skipIf(!isLong)(`gets no write from the operator in ${seconds} s (--long)`, async () => {
    expect(await writesWhileUnchanged()).toEqual([]);
  });

  test("gets no write after the leading operator was killed and another took over, its Lease aside", async () => {
    const killed = await leader();
    await killOperator(killed);
    await eventually(async () => expect(await leader()).toBeTruthy());
    // Its first pass over everything.
    await sleep(10_000);
    expect(await writesWhileUnchanged()).toEqual([]);
  });
});
