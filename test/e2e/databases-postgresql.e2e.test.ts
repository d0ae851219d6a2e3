import { getPriority } from "node:os";
import { afterAll, expect, test } from "vitest";
import { recordFigures } from "../../hack/testing/figures.ts";
import { postgresqlDriver } from "../chaos/support/engines.ts";
import { expectResumedAsOne } from "../chaos/support/fewer-instances.ts";
import { isLong } from "../kit/long.ts";
import { longestGap, lostRows, secondPrimaries, Writer } from "./support/acknowledged.ts";
import { apiClient, deleteProjects, untilStatus } from "./support/api.ts";
import {
  type Connection,
  createDatabase,
  type DatabaseProject,
  databaseProject,
  deletePod,
  patchDatabase,
  podsOfDatabase,
  readDatabase,
  untilReady,
} from "./support/databases.ts";
import { eventually } from "./support/eventually.ts";
import { connectPostgresql, createRows, readRows, rowsOver } from "./support/postgresql.ts";
import { processOf } from "./support/process.ts";

/** PostgreSQL over the API, by PostgreSQL's own protocol, from outside the cluster. */

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

// Every step waits for a database to be whole again, on a machine that may do much else.
const timeout = 400_000;

async function create(
  config: Readonly<Record<string, unknown>>,
  plan = "db-basic",
): Promise<DatabaseProject> {
  const body = databaseProject(plan, { type_project: "postgresql", version: "17", ...config });
  const project = await createDatabase(call, body);
  made.push(project.id);
  await untilReady(project);
  return project;
}

/** Connects, queries, and closes the connection. */
async function asking<T>(
  project: DatabaseProject,
  ask: (client: Awaited<ReturnType<typeof connectPostgresql>>) => Promise<T>,
): Promise<T> {
  const client = await eventually(() => connectPostgresql(project));
  try {
    return await ask(client);
  } finally {
    await client.end();
  }
}

const names = async (project: DatabaseProject): Promise<string[]> =>
  (await podsOfDatabase(project)).map(({ metadata }) => metadata?.name ?? "");

// A change of plan replaces every pod in turn as well, while rows are written.
test
  .skipIf(!isLong)
  .concurrent(
    "three instances lose no row while every pod is deleted in turn (--long)",
    { timeout },
    async () => {
      const project = await create({ instances: 3 });
      await asking(project, createRows);
      const writer = new Writer(async () => {
        const client = await connectPostgresql(project);
        return rowsOver(client, "outside");
      });
      try {
        for (const name of await names(project)) {
          await writer.untilWrites();
          await deletePod(project, name);
        }
        await writer.untilWrites();
      } finally {
        await writer.stop();
      }
      const rows = await asking(project, readRows);
      expect(lostRows(writer.acknowledged, rows)).toEqual([]);
      expect(writer.acknowledged.length).toBeGreaterThan(100);
    },
  );

test.concurrent("one instance grows to three and goes back to one, with its rows", { timeout }, async () => {
  const project = await create({});
  await asking(project, createRows);
  const writer = new Writer(async () => rowsOver(await connectPostgresql(project), "outside"));
  try {
    for (const instances of [3, 1]) {
      await writer.untilWrites();
      await patchDatabase(project, [{ op: "replace", path: "/spec/instances", value: instances }]);
      await eventually(async () => expect(await names(project)).toHaveLength(instances));
      await untilReady(project);
    }
    await writer.untilWrites();
  } finally {
    await writer.stop();
  }
  expect(lostRows(writer.acknowledged, await asking(project, readRows))).toEqual([]);
});

/** Connects, and closes the connection, again and again; what fails is tried again. @returns how many succeeded */
async function logins(project: DatabaseProject, until: number): Promise<number> {
  let done = 0;
  while (Date.now() < until) {
    try {
      await (await connectPostgresql(project)).end();
      done += 1;
    } catch {
      // Refused or late: the server has more to do than it can.
    }
  }
  return done;
}

// Fewer in the short form, beside which other files run.
const [clients, seconds] = isLong ? [50, 30] : [20, 10];
test.concurrent(`one instance that logins keep busy for ${seconds} s is slow, and is not restarted`, {
  timeout,
}, async () => {
  const project = await create({});
  const pod = `${project.id}-0`;
  const [patroni, server] = await Promise.all([processOf(pod, "/patroni "), processOf(pod, "postgres -D")]);
  expect(getPriority(server) - getPriority(patroni)).toBe(10);
  const until = Date.now() + seconds * 1_000;
  const counts = await Promise.all(Array.from({ length: clients }, () => logins(project, until)));
  expect(counts.reduce((a, b) => a + b)).toBeGreaterThan(clients);
  await untilReady(project);
  const restarts = (await podsOfDatabase(project)).map(
    ({ metadata, status }) => [metadata?.name, status?.containerStatuses?.[0]?.restartCount] as const,
  );
  expect(restarts).toEqual([[pod, 0]]);
});

test.concurrent("a new password leaves open sessions alone, a pause keeps the rows", {
  timeout,
}, async () => {
  const project = await create({});
  const open = await eventually(() => connectPostgresql(project));
  await createRows(open);
  await rowsOver(open, "outside").insert(0);

  const renewed = await call("POST", `/v1/project/${project.id}/database/credentials/renew`);
  expect(renewed).toMatchObject({ status: 200 });
  const { password } = (renewed.body.data as { connection: Connection }).connection;
  expect(password).not.toBe(project.connection.password);
  expect(await readRows(open)).toEqual(new Set([0]));
  await open.end();
  await eventually(() => expect(connectPostgresql(project)).rejects.toMatchObject({ code: "28P01" }));
  const current = { ...project, connection: { ...project.connection, password } };
  expect(await asking(current, readRows)).toEqual(new Set([0]));

  expect(await call("POST", `/v1/project/${project.id}/pause`)).toMatchObject({ status: 200 });
  await untilStatus(call, project.id, "stopped");
  await eventually(async () => expect(await names(project)).toEqual([]));
  expect(await call("POST", `/v1/project/${project.id}/resume`)).toMatchObject({ status: 200 });
  await untilReady(project);
  expect(await asking(current, readRows)).toEqual(new Set([0]));
});

/** Changes the plan of three instances while rows are written; the group serves two tests. */
async function changePlan() {
  const project = await create({ instances: 3 });
  await asking(project, createRows);
  const uids = async () => new Set((await podsOfDatabase(project)).map(({ metadata }) => metadata?.uid));
  const before = await uids();
  const { primary } = (await readDatabase(project)).status?.database ?? {};
  const writer = new Writer(async () => rowsOver(await connectPostgresql(project), "outside"));
  try {
    await writer.untilWrites();
    const larger = { plan: "db-premium" };
    expect(await call("PATCH", `/v1/project/${project.id}/plan`, larger)).toMatchObject({ status: 200 });
    await eventually(async () => expect([...(await uids())].some((uid) => before.has(uid))).toBe(false), {
      within: 300_000,
    });
    await untilReady(project);
    await writer.untilWrites();
  } finally {
    await writer.stop();
  }
  const rows = await asking(project, readRows);
  // Another one took its place before its own pod went.
  expect((await readDatabase(project)).status?.database?.primary).not.toBe(primary);
  return { project, acknowledged: writer.acknowledged, rows };
}

let changed: ReturnType<typeof changePlan> | undefined;
const planChanged = () => {
  changed ??= changePlan();
  return changed;
};

test.concurrent("a change of plan replaces three instances, the primary last, and loses no row", {
  timeout,
}, async () => {
  const { acknowledged, rows } = await planChanged();
  await recordFigures("failover", "PostgreSQL: a change of plan, each of three instances replaced", {
    "rows acknowledged": acknowledged.length,
    "ms at most without one from outside": Math.round(longestGap(acknowledged)),
  });
  expect(lostRows(acknowledged, rows)).toEqual([]);
  expect(secondPrimaries(acknowledged)).toEqual([]);
});

test.concurrent("three instances that are paused and resumed as one lose no row, and no volume is deleted", {
  timeout: 900_000,
}, async () => {
  const { project } = await planChanged();
  await expectResumedAsOne(postgresqlDriver, project, [{ op: "replace", path: "/spec/instances", value: 1 }]);
});

interface Snapshot {
  observed_at: string | null;
  native?: { activity: { commits_total: number | null; rows_written_total: number | null } } | null;
}

test
  .skipIf(!isLong)
  .concurrent(
    "snapshots before and after a workload agree with it within 2 % (--long)",
    { timeout },
    async () => {
      const project = await create({}, "db-premium");
      /** The first snapshot of what was after this call. */
      const snapshot = async () => {
        const since = new Date().toISOString();
        return eventually(
          async () => {
            const { data } = (await call<Snapshot>("GET", `/v1/project/${project.id}/metrics`)).body;
            const { commits_total, rows_written_total } = data?.native?.activity ?? {};
            if ((data?.observed_at ?? "") <= since) {
              throw new Error(`not sampled since ${since}`);
            }
            return { commits: commits_total ?? 0, rows: rows_written_total ?? 0 };
          },
          { within: 200_000 },
        );
      };
      await asking(project, createRows);
      const before = await snapshot();
      const transactions = 3_000;
      await asking(project, async (client) => {
        const { insert } = rowsOver(client, "outside");
        for (let id = 0; id < transactions; id += 1) {
          await insert(id);
        }
      });
      const after = await snapshot();
      const grown = { commits: after.commits - before.commits, rows: after.rows - before.rows };
      // The server itself writes statistics of tables, and commits.
      for (const count of Object.values(grown)) {
        expect(Math.abs(count - transactions) / transactions, JSON.stringify(grown)).toBeLessThan(0.02);
      }
    },
  );

// The stack has the images of these with `hack/up.sh --databases all`.
test.skipIf(!isLong).concurrent.for(["15", "16", "17", "18"])(
  "version %s keeps its rows when its pod is deleted (--long)",
  {
    timeout,
  },
  async (version, { expect }) => {
    const project = await create({ version });
    const running = (await readDatabase(project)).status?.database?.runningVersion;
    expect(running).toMatch(new RegExp(`^${version}\\.`));
    const shown = await asking(project, async (client) => {
      await createRows(client);
      await rowsOver(client, "outside").insert(1);
      return client.query<{ data_checksums: string }>("SHOW data_checksums");
    });
    expect(shown.rows).toEqual([{ data_checksums: "on" }]);
    await deletePod(project, `${project.id}-0`);
    expect(await asking(project, readRows)).toEqual(new Set([1]));
  },
);
