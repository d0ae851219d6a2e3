import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { afterAll, expect, test } from "vitest";
import { recordFigures } from "../../../hack/testing/figures.ts";
import { longestGap, lostRows, secondPrimaries, Writer } from "../../e2e/support/acknowledged.ts";
import { apiClient, deleteProjects, untilServed } from "../../e2e/support/api.ts";
import {
  createDatabase,
  type DatabaseProject,
  databaseProject,
  podsOfDatabase,
  readDatabase,
  untilReady,
} from "../../e2e/support/databases.ts";
import { eventually } from "../../e2e/support/eventually.ts";
import { connectPostgresql, createRows, readRows, rowsOver } from "../../e2e/support/postgresql.ts";
import { machineProcess } from "../../e2e/support/process.ts";
import { isLong } from "../../kit/long.ts";

/** The whole cluster loses its apiserver, and with it every database what it elects its primary by. */

const SECONDS = isLong ? 120 : 45;

const call = apiClient();
const made: string[] = [];
afterAll(async () => {
  await untilServed(call);
  await deleteProjects(call, made);
});

/** What became of a connection. */
const fateOf = (client: pg.Client): Promise<string> =>
  client
    .query("SELECT 1")
    .then(() => client.end())
    .then(
      () => "still open",
      (error: Error) => `lost: ${error.message}`,
    );

/** How often containers of the database were restarted. */
async function restarts(project: DatabaseProject): Promise<number> {
  const statuses = (await podsOfDatabase(project)).flatMap((pod) => pod.status?.containerStatuses ?? []);
  return statuses.reduce((sum, { restartCount }) => sum + restartCount, 0);
}

test(`PostgreSQL accepts writes while the apiserver is frozen for ${SECONDS} s, and loses nothing`, {
  timeout: 600_000,
}, async () => {
  const project = await createDatabase(
    call,
    databaseProject("db-basic", { type_project: "postgresql", version: "17", instances: 3 }),
  );
  made.push(project.id);
  const { status } = await untilReady(project);
  const idle = await eventually(() => connectPostgresql(project));
  await createRows(idle);
  const writer = new Writer(async () => rowsOver(await connectPostgresql(project), "outside"));
  const apiserver = await machineProcess("kube-apiserver --bind-address=0.0.0.0");
  try {
    await writer.untilWrites();
    process.kill(apiserver, "SIGSTOP");
    await sleep(SECONDS * 1_000);
  } finally {
    process.kill(apiserver, "SIGCONT");
  }
  try {
    await writer.untilWrites();
    // The answers of requests that were frozen along with it come first.
    await eventually(() => untilReady(project), { within: 300_000, every: 1_000 });
    await writer.untilWrites();
  } finally {
    await writer.stop();
  }
  const gap = Math.round(longestGap(writer.acknowledged));
  await recordFigures("failover", "PostgreSQL: kube-apiserver frozen", {
    "rows acknowledged": writer.acknowledged.length,
    "ms at most without one from outside": gap,
  });
  const client = await eventually(() => connectPostgresql(project));
  expect(lostRows(writer.acknowledged, await readRows(client))).toEqual([]);
  await client.end();
  // Neither the session that wrote all the while nor the one that was idle was ended.
  expect(writer.failures).toEqual([]);
  expect(await fateOf(idle)).toBe("still open");
  expect(await restarts(project)).toBe(0);
  expect(secondPrimaries(writer.acknowledged)).toEqual([]);
  // No other member became the primary, and writes never stopped for as long as the fault.
  expect((await readDatabase(project)).status?.database?.primary).toBe(status?.database?.primary);
  expect(gap).toBeLessThan((SECONDS * 1_000) / 2);
});
