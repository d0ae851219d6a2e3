import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isLong } from "../kit/long.ts";
import { lostRows, Writer } from "./support/acknowledged.ts";
import { apiClient, deleteProjects, untilStatus } from "./support/api.ts";
import { cluster, exec } from "./support/cluster.ts";
import {
  type Connection,
  createDatabase,
  type DatabaseProject,
  databaseProject,
  deletePod,
  podsOfDatabase,
  readDatabase,
  untilReady,
} from "./support/databases.ts";
import { eventually } from "./support/eventually.ts";
import {
  connectForwarded,
  connectMariadb,
  createRows,
  type MariadbClient,
  readRows,
  rowsOver,
} from "./support/mariadb.ts";

/** MariaDB over the API, by MariaDB's own protocol, from outside the cluster. A group takes a minute to be made: one has all of it. */

const call = apiClient();
// Every step waits for a database to be whole again, on a machine that may do much else.
const timeout = 600_000;

describe.for(isLong ? ["10", "11"] : ["11"])("MariaDB %s", (version) => {
  let project: DatabaseProject;
  beforeAll(async () => {
    const body = databaseProject("db-premium", { type_project: "mariadb", version, instances: 3 });
    project = await createDatabase(call, body);
    await untilReady(project, 400_000);
    await asking(createRows);
  }, 420_000);
  afterAll(() => deleteProjects(call, project ? [project.id] : []));

  /** Connects, queries, and closes the connection. */
  async function asking<T>(ask: (client: MariadbClient) => Promise<T>): Promise<T> {
    const client = await eventually(() => connectMariadb(project));
    try {
      return await ask(client);
    } finally {
      await client.end();
    }
  }

  const names = async (): Promise<string[]> =>
    (await podsOfDatabase(project)).map(({ metadata }) => metadata?.name ?? "");

  /** Rows that every member has, one after the other. */
  async function expectEverywhere(ids: readonly number[]): Promise<void> {
    for (const pod of await names()) {
      const rows = await eventually(async () => {
        const client = await connectForwarded(project, pod);
        return readRows(client).finally(() => client.end());
      });
      expect(
        ids.filter((id) => !rows.has(id)),
        pod,
      ).toEqual([]);
    }
  }

  test("loses no row while every pod is deleted in turn", { timeout }, async () => {
    const writer = new Writer(async () => rowsOver(await connectMariadb(project), "outside"));
    try {
      for (const name of await names()) {
        await writer.untilWrites();
        await deletePod(project, name);
      }
      await writer.untilWrites();
    } finally {
      await writer.stop();
    }
    expect(lostRows(writer.acknowledged, await asking(readRows))).toEqual([]);
    await expectEverywhere(writer.acknowledged.map(({ id }) => id));
    expect(writer.acknowledged.length).toBeGreaterThan(100);
  });

  // The group's own tests sample it, and PostgreSQL's what the API answers.
  test.skipIf(!isLong)(
    "snapshots before and after mariadb-slap agree with it within 2 % (--long)",
    { timeout },
    async () => {
      const { primary } = (await readDatabase(project)).status?.database ?? {};
      interface Snapshot {
        observed_at: string | null;
        native?: { activity: { questions_total: number | null } } | null;
      }
      /** Questions that the primary was asked, by the first snapshot after this call. */
      const questions = async (): Promise<number> => {
        const since = new Date().toISOString();
        return eventually(
          async () => {
            const path = `/v1/project/${project.id}/metrics?instance=${primary}`;
            const { data } = (await call<Snapshot>("GET", path)).body;
            if ((data?.observed_at ?? "") <= since) {
              throw new Error(`not sampled since ${since}`);
            }
            return data?.native?.activity.questions_total ?? 0;
          },
          { within: 200_000 },
        );
      };
      const before = await questions();
      const asked = 40_000;
      const slap = `mariadb-slap --no-defaults --socket=/run/mysqld/mysqld.sock --user="$(id -un)" --concurrency=4 --number-of-queries=${asked} --create-schema=${project.connection.database} --query="SELECT COUNT(*) FROM kept WHERE id = 1"`;
      const done = await exec(project.namespace, String(primary), "database", ["/bin/sh", "-c", slap]);
      expect(done, done.output).toMatchObject({ exitCode: 0 });
      const counted = (await questions()) - before;
      // The platform itself queries, too: the state of the group, and for the snapshots.
      expect(Math.abs(counted - asked) / asked, `${counted} questions`).toBeLessThan(0.02);
    },
  );

  test("takes over a new password and leaves open sessions alone", { timeout }, async () => {
    const open = await eventually(() => connectMariadb(project));
    const renewed = await call("POST", `/v1/project/${project.id}/database/credentials/renew`);
    expect(renewed).toMatchObject({ status: 200 });
    const { connection } = renewed.body.data as { connection: Connection };
    expect(connection.password).not.toBe(project.connection.password);
    expect(await open.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
    await open.end();
    await eventually(() => expect(connectMariadb(project)).rejects.toMatchObject({ errno: 1045 }));
    project = { ...project, connection };
    await asking((client) => client.query("SELECT 1"));
  });

  test.skipIf(!isLong)(
    "has every row after all three pods were lost together, and after a pause (--long)",
    { timeout },
    async () => {
      const writer = new Writer(async () => rowsOver(await connectMariadb(project), "outside"));
      try {
        await writer.untilWrites();
        const { namespace } = project;
        const before = new Set((await podsOfDatabase(project)).map(({ metadata }) => metadata?.uid));
        await Promise.all(
          (await names()).map((name) =>
            cluster.core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 }),
          ),
        );
        await eventually(async () => {
          const pods = await podsOfDatabase(project);
          expect(pods.filter(({ metadata }) => !before.has(metadata?.uid))).toHaveLength(3);
        });
        await writer.untilWrites(300_000);
        await untilReady(project, 300_000);
      } finally {
        await writer.stop();
      }
      expect(lostRows(writer.acknowledged, await asking(readRows))).toEqual([]);

      expect(await call("POST", `/v1/project/${project.id}/pause`)).toMatchObject({ status: 200 });
      await untilStatus(call, project.id, "stopped");
      await eventually(async () => expect(await names()).toEqual([]));
      expect(await call("POST", `/v1/project/${project.id}/resume`)).toMatchObject({ status: 200 });
      await untilReady(project, 300_000);
      expect(lostRows(writer.acknowledged, await asking(readRows))).toEqual([]);
    },
  );
});
