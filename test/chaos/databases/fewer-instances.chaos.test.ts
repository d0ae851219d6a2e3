import { afterAll, expect, test, vi } from "vitest";
import { apiClient, deleteProjects } from "../../e2e/support/api.ts";
import { cluster } from "../../e2e/support/cluster.ts";
import {
  createDatabase,
  type DatabaseProject,
  patchDatabase,
  podsOfDatabase,
  readDatabase,
  untilReady,
} from "../../e2e/support/databases.ts";
import { eventually } from "../../e2e/support/eventually.ts";
import { casesToRun } from "../../kit/long.ts";
import { type Engine, postgresqlDriver, valkeyDriver } from "../support/engines.ts";

/**
 * The primary is not the first instance; the database is paused, asks for one instance, and is resumed: every acknowledged row
 * is there, and no volume is deleted.
 */

vi.setConfig({ testTimeout: 900_000 });

const ROWS = 1_000;
/** How often a switchover is requested at most. */
const MOVES = 5;
const UNUSED = "slipway.dev/unused-since";
const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

interface Case {
  isLong?: true;
  engine: Engine;
  name: string;
  /** Has another instance than the primary take over. */
  move(project: DatabaseProject): Promise<unknown>;
  /** The part of the spec that requests one instance. */
  fewer: readonly object[];
}

const cases: Case[] = [
  {
    engine: postgresqlDriver,
    name: postgresqlDriver.name,
    // The primary's pod is replaced last, and hands over before that.
    move: (project) => patchDatabase(project, [{ op: "replace", path: "/spec/plan", value: "db-premium" }]),
    fewer: [{ op: "replace", path: "/spec/instances", value: 1 }],
  },
  {
    isLong: true,
    engine: valkeyDriver,
    name: valkeyDriver.name,
    move: ({ id, namespace }) =>
      cluster.core.deleteNamespacedPod({ namespace, name: `${id}-0`, gracePeriodSeconds: 0 }),
    fewer: [{ op: "replace", path: "/spec/plan", value: "db-basic" }],
  },
];

const primaryOf = async (project: DatabaseProject): Promise<string> => {
  const primary = (await readDatabase(project)).status?.database?.primary;
  if (!primary) {
    throw new Error("no instance takes writes");
  }
  return primary;
};

/** Makes another instance the primary. A pod that is lost may be back before another could take over: it is then lost again. */
async function moveFromFirst(project: DatabaseProject, move: Case["move"]): Promise<void> {
  const first = `${project.id}-0`;
  for (let attempt = 1; attempt <= MOVES && (await primaryOf(project)) === first; attempt += 1) {
    await move(project);
    await eventually(async () => expect(await primaryOf(project)).not.toBe(first), { within: 60_000 }).catch(
      () => console.log(`${project.id}: ${first} was the primary again after attempt ${attempt}`),
    );
    await untilReady(project, 360_000);
  }
  expect(await primaryOf(project)).not.toBe(first);
}

test.concurrent.for(casesToRun(cases))(
  "$name of three, paused and resumed as one",
  async ({ engine, move, fewer }) => {
    const project = await createDatabase(call, engine.body());
    made.push(project.id);
    await untilReady(project, 360_000);
    await moveFromFirst(project, move);
    const session = await eventually(() => engine.open(project));
    for (let id = 1; id <= ROWS; id += 1) {
      await session.insert(id);
    }
    await session.close();

    await patchDatabase(project, [{ op: "add", path: "/spec/paused", value: true }]);
    await eventually(async () => expect(await podsOfDatabase(project)).toEqual([]), { within: 180_000 });
    await patchDatabase(project, fewer);
    await patchDatabase(project, [{ op: "replace", path: "/spec/paused", value: false }]);

    const claimsOf = async () => {
      const { items } = await cluster.core.listNamespacedPersistentVolumeClaim({
        namespace: project.namespace,
        labelSelector: `slipway.dev/project=${project.id}`,
      });
      return items.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
    };
    // Until it is one instance, and the volumes of the others are marked.
    await eventually(
      async () => {
        const claims = await claimsOf();
        const marked = claims.filter(({ metadata }) => metadata?.annotations?.[UNUSED] !== undefined);
        expect(marked.map(({ metadata }) => metadata?.name).toSorted()).toEqual([
          `data-${project.id}-1`,
          `data-${project.id}-2`,
        ]);
      },
      { within: 420_000 },
    );
    // The one that stays is replaced for its plan: for a moment there is none.
    await eventually(async () => expect(await podsOfDatabase(project)).toHaveLength(1));
    await untilReady(project, 360_000);
    expect(await claimsOf()).toHaveLength(3);
    const kept = await eventually(() => engine.rows(project));
    expect(Array.from({ length: ROWS }, (_, index) => index + 1).filter((id) => !kept.has(id))).toEqual([]);
  },
);
