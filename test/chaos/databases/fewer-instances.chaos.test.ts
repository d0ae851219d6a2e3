import { afterAll, test } from "vitest";
import { apiClient, deleteProjects } from "../../e2e/support/api.ts";
import { createDatabase, untilReady } from "../../e2e/support/databases.ts";
import { isLong } from "../../kit/long.ts";
import { valkeyDriver } from "../support/engines.ts";
import { expectResumedAsOne } from "../support/fewer-instances.ts";

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

// PostgreSQL's is with its other changes: test/e2e/databases-postgresql.e2e.test.ts.
test.skipIf(!isLong)(
  "Valkey of three, paused and resumed as one (--long)",
  { timeout: 900_000 },
  async () => {
    const project = await createDatabase(call, valkeyDriver.body());
    made.push(project.id);
    await untilReady(project, 360_000);
    await expectResumedAsOne(valkeyDriver, project, [
      { op: "replace", path: "/spec/plan", value: "db-basic" },
    ]);
  },
);
