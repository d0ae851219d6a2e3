import { afterAll, beforeAll, expect, test } from "vitest";
import { recordFigures } from "../../../hack/testing/figures.ts";
import {
  type Acknowledged,
  longestGap,
  lostRows,
  secondPrimaries,
  Writer,
} from "../../e2e/support/acknowledged.ts";
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
import {
  connectPod,
  connectPostgresql,
  createRows,
  readRows,
  rowsOver,
} from "../../e2e/support/postgresql.ts";
import { signalProcess } from "../../e2e/support/process.ts";
import { casesToRun } from "../../kit/long.ts";
import { blackhole } from "./support/network.ts";

/**
 * A PostgreSQL of three instances under faults, with writers that remember every acknowledged row: one from outside through the
 * Service, and one at each pod past it, so that a second primary would be caught.
 */

const call = apiClient();
let project: DatabaseProject;
beforeAll(async () => {
  project = await createDatabase(
    call,
    databaseProject("db-basic", { type_project: "postgresql", version: "17", instances: 3 }),
  );
  await untilReady(project);
  const client = await eventually(() => connectPostgresql(project));
  await createRows(client);
  await client.end();
});
afterAll(() => deleteProjects(call, project ? [project.id] : []));

const primaryNow = async (): Promise<string> => {
  const primary = (await readDatabase(project)).status?.database?.primary;
  if (!primary) {
    throw new Error("no instance takes writes");
  }
  return primary;
};

/** Deletes pods by force, and waits until others have their names. */
const losePods = async (names: readonly string[]): Promise<void> => {
  const { namespace } = project;
  const uids = new Set((await podsOfDatabase(project)).map(({ metadata }) => metadata?.uid));
  await Promise.all(
    names.map((name) => cluster.core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 })),
  );
  await eventually(async () => {
    const pods = await podsOfDatabase(project);
    expect(pods.filter(({ metadata }) => !uids.has(metadata?.uid))).toHaveLength(names.length);
  });
};

/** Processes that the primary's pod has had. */
const startsOf = async (name: string): Promise<number> => {
  const pod = (await podsOfDatabase(project)).find(({ metadata }) => metadata?.name === name);
  return pod?.status?.containerStatuses?.[0]?.restartCount ?? 0;
};

/** What befalls the primary; resolves once it has had its effect. */
const faults: { name: string; isLong?: true; befalls: (primary: string) => Promise<void> }[] = [
  {
    name: "the server process is killed",
    befalls: (primary) => signalProcess(primary, "postgres -D", "SIGKILL"),
  },
  {
    name: "the primary's pod is deleted by force",
    // As when all three are lost, and when each is replaced for another plan.
    isLong: true,
    befalls: (primary) => losePods([primary]),
  },
  {
    name: "the primary's Patroni is frozen",
    befalls: async (primary) => {
      const starts = await startsOf(primary);
      await signalProcess(primary, "/patroni ", "SIGSTOP");
      // The server itself continues, and would acknowledge writes that no other member has, until another one has replaced
      // it or, where that takes longer, its kubelet has restarted it.
      await eventually(async () => {
        const ended = (await primaryNow()) !== primary || (await startsOf(primary)) > starts;
        expect(ended).toBe(true);
      });
    },
  },
  {
    name: "the primary is cut off from the apiserver for 45 s",
    befalls: async (primary) => {
      const kubernetes = await cluster.core.readNamespacedService({
        namespace: "default",
        name: "kubernetes",
      });
      await blackhole(primary, "patroni", kubernetes.spec?.clusterIP ?? "", 45_000);
      // It reached the other two all the time, and so stayed the primary.
      expect(await primaryNow()).toBe(primary);
    },
  },
  {
    name: "two of three are lost, the primary among them",
    isLong: true,
    befalls: async (primary) => {
      const pods = (await podsOfDatabase(project)).map(({ metadata }) => metadata?.name ?? "");
      await losePods([primary, ...pods.filter((name) => name !== primary).slice(0, 1)]);
    },
  },
  {
    name: "all three are lost at once",
    befalls: async () => {
      await losePods((await podsOfDatabase(project)).map(({ metadata }) => metadata?.name ?? ""));
    },
  },
];

test.for(casesToRun(faults))(
  "$name: no acknowledged row is lost, and no second primary acknowledges",
  async ({ name, befalls }) => {
    await untilReady(project);
    const outside = new Writer(async () => rowsOver(await connectPostgresql(project), "outside"));
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
      await outside.untilWrites();
      // The failed one recovers automatically.
      await untilReady(project);
      await outside.untilWrites();
    } finally {
      await Promise.all(writers.map((writer) => writer.stop()));
    }
    const acknowledged: Acknowledged[] = writers.flatMap((writer) => writer.acknowledged);
    const after = await primaryNow();
    await recordFigures("failover", `PostgreSQL: ${name}`, {
      "rows acknowledged": acknowledged.length,
      "ms at most without one from outside": Math.round(longestGap(outside.acknowledged)),
    });
    const client = await eventually(() => connectPostgresql(project));
    const rows = await readRows(client).finally(() => client.end());
    expect(lostRows(acknowledged, rows)).toEqual([]);
    expect(secondPrimaries(acknowledged)).toEqual([]);
    const byPod = new Set(writers.slice(1).flatMap((writer) => writer.acknowledged.map(({ by }) => by)));
    expect(byPod).toContain(after);
  },
);
