import { afterAll, beforeAll, expect, test } from "vitest";
import { recordFigures } from "../../../hack/testing/figures.ts";
import { type Acknowledged, longestGap, lostRows, Writer } from "../../e2e/support/acknowledged.ts";
import { apiClient, deleteProjects } from "../../e2e/support/api.ts";
import { cluster } from "../../e2e/support/cluster.ts";
import {
  createDatabase,
  type DatabaseProject,
  databaseProject,
  podsOfDatabase,
  readDatabase,
  untilReady,
} from "../../e2e/support/databases.ts";
import { eventually } from "../../e2e/support/eventually.ts";
import { connectMariadb, connectPod, createRows, readRows, rowsOver } from "../../e2e/support/mariadb.ts";
import { processOf, signalProcess } from "../../e2e/support/process.ts";
import { isLong } from "../../kit/long.ts";

/**
 * A MariaDB of three instances under faults, with writers that remember every acknowledged row: one from outside through the
 * Service, and one at each pod past it. Every member may acknowledge, in the part of the group that has a majority alone: a
 * row that one acknowledged outside of it would not be on the others afterwards.
 */

const timeout = 600_000;
const call = apiClient();
let project: DatabaseProject;
beforeAll(async () => {
  project = await createDatabase(
    call,
    databaseProject("db-basic", { type_project: "mariadb", version: "11", instances: 3 }),
  );
  await untilReady(project, 400_000);
  const client = await eventually(() => connectMariadb(project));
  await createRows(client);
  await client.end();
}, 420_000);
afterAll(() => deleteProjects(call, project ? [project.id] : []));

const primaryNow = async (): Promise<string> => {
  const primary = (await readDatabase(project)).status?.database?.primary;
  if (!primary) {
    throw new Error("no instance takes writes");
  }
  return primary;
};

const names = async (): Promise<string[]> =>
  (await podsOfDatabase(project)).map(({ metadata }) => metadata?.name ?? "");

/** Deletes pods by force, and waits until others have their names. */
const losePods = async (lost: readonly string[]): Promise<void> => {
  const { namespace } = project;
  const uids = new Set((await podsOfDatabase(project)).map(({ metadata }) => metadata?.uid));
  await Promise.all(
    lost.map((name) => cluster.core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 })),
  );
  await eventually(async () => {
    const pods = await podsOfDatabase(project);
    expect(pods.filter(({ metadata }) => !uids.has(metadata?.uid))).toHaveLength(lost.length);
  });
};

const SERVER = "mariadbd --defaults-file";

interface Fault {
  name: string;
  befalls: (primary: string) => Promise<void>;
}

/** What befalls the primary; resolves once it has had its effect. */
const faults: Fault[] = [
  {
    name: "all three servers are killed at once",
    befalls: async () => {
      const ids = await Promise.all((await names()).map((name) => processOf(name, SERVER)));
      for (const id of ids) {
        process.kill(id, "SIGKILL");
      }
    },
  },
  {
    name: "the primary's server is killed",
    befalls: (primary) => signalProcess(primary, SERVER, "SIGKILL"),
  },
  { name: "the primary's pod is deleted by force", befalls: (primary) => losePods([primary]) },
  {
    name: "two of three are lost, the primary among them",
    befalls: async (primary) => {
      const others = (await names()).filter((name) => name !== primary);
      await losePods([primary, ...others.slice(0, 1)]);
    },
  },
  { name: "all three pods are lost at once", befalls: async () => losePods(await names()) },
  {
    name: "the primary's server is frozen, and wakes when another one has taken over",
    befalls: async (primary) => {
      const server = await processOf(primary, SERVER);
      process.kill(server, "SIGSTOP");
      try {
        await eventually(async () => expect(await primaryNow()).not.toBe(primary));
      } finally {
        process.kill(server, "SIGCONT");
      }
    },
  },
];

// The group's own tests have lost and restarted members, and the end-to-end tests lost pods.
test.skipIf(!isLong).for(faults)(
  "$name: no acknowledged row is lost (--long)",
  { timeout },
  async ({ name, befalls }) => {
    await untilReady(project, 300_000);
    const outside = new Writer(async () => rowsOver(await connectMariadb(project), "outside"));
    const writers = [
      outside,
      ...[0, 1, 2].map((ordinal) => {
        const pod = `${project.id}-${ordinal}`;
        return new Writer(async () => rowsOver(await connectPod(project, pod), pod), 100);
      }),
    ];
    const before = await primaryNow();
    try {
      await outside.untilWrites();
      await befalls(before);
      await outside.untilWrites(300_000);
      // The failed one recovers automatically.
      await untilReady(project, 300_000);
      await outside.untilWrites();
    } finally {
      await Promise.all(writers.map((writer) => writer.stop()));
    }
    const acknowledged: Acknowledged[] = writers.flatMap((writer) => writer.acknowledged);
    await recordFigures("failover", `MariaDB: ${name}`, {
      "rows acknowledged": acknowledged.length,
      "ms at most without one from outside": Math.round(longestGap(outside.acknowledged)),
    });
    for (const pod of await names()) {
      // A member that has only just come back takes connections, and answers 1047 until it has caught up with the group.
      const rows = await eventually(async () => {
        const client = await connectPod(project, pod);
        return readRows(client).finally(() => client.end());
      });
      expect(lostRows(acknowledged, rows), pod).toEqual([]);
    }
  },
);
