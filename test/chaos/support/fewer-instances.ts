import { expect } from "vitest";
import { cluster } from "../../e2e/support/cluster.ts";
import {
  type DatabaseProject,
  patchDatabase,
  podsOfDatabase,
  readDatabase,
  untilReady,
} from "../../e2e/support/databases.ts";
import { eventually } from "../../e2e/support/eventually.ts";
import type { Change, Engine } from "./engines.ts";

const ROWS = 1_000;
/** Above the ids of other writers. */
const FIRST_ROW = 1_000_000;
const ATTEMPTS = 3;
const FINALIZER = "slipway.dev/test";
const UNUSED = "slipway.dev/unused-since";

const primaryOf = async (project: DatabaseProject): Promise<string> => {
  const primary = (await readDatabase(project)).status?.database?.primary;
  if (!primary) {
    throw new Error("no instance takes writes");
  }
  return primary;
};

/** Makes another instance the primary. */
async function moveFromFirst(project: DatabaseProject): Promise<void> {
  const first = `${project.id}-0`;
  for (let attempt = 1; attempt <= ATTEMPTS && (await primaryOf(project)) === first; attempt += 1) {
    await loseUntilReplaced(project, first);
    await untilReady(project, 360_000);
  }
  expect(await primaryOf(project)).not.toBe(first);
}

/**
 * The primary is lost, and its name stays taken until another has replaced it: a pod that is only deleted is back, and the primary
 * again, within seconds. None can replace one that was not yet followed again.
 */
async function loseUntilReplaced(project: DatabaseProject, name: string): Promise<void> {
  const { namespace } = project;
  const setFinalizers = (value: string[]) =>
    cluster.core.patchNamespacedPod({
      namespace,
      name,
      body: [{ op: "add", path: "/metadata/finalizers", value }],
    });
  await setFinalizers([FINALIZER]);
  try {
    await cluster.core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 });
    await eventually(async () => expect(await primaryOf(project)).not.toBe(name), { within: 90_000 }).catch(
      () => console.log(`no instance has replaced ${name}`),
    );
  } finally {
    await setFinalizers([]);
  }
}

/**
 * The primary of three is not the first instance; the database is paused, asks for one instance, and is resumed: every
 * acknowledged row is there, and no volume is deleted.
 * @param project all of its three instances are ready
 * @param fewer the change of its spec that requests one instance
 */
export async function expectResumedAsOne(
  engine: Engine,
  project: DatabaseProject,
  fewer: Change,
): Promise<void> {
  await moveFromFirst(project);
  const written = Array.from({ length: ROWS }, (_, index) => FIRST_ROW + index);
  const session = await eventually(() => engine.open(project));
  for (const id of written) {
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
  expect(written.filter((id) => !kept.has(id))).toEqual([]);
}
