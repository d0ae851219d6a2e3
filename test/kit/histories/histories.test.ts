import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Database } from "../../../operator/src/databases/database.ts";
import { databaseOf, exampleDatabase } from "../databases/examples.ts";
import { isLong } from "../long.ts";
import { randomOf } from "../random.ts";
import { ClickHouseModel } from "./clickhouse.ts";
import { Cluster, type Model } from "./cluster.ts";
import { MariadbModel } from "./mariadb.ts";
import { PostgresqlModel } from "./postgresql.ts";
import { ValkeyModel } from "./valkey.ts";

/**
 * Whatever is requested of a database, and whatever fault it has, every acknowledged write is there once all nodes are back. The
 * operator's part is the real one: `planMembers`, `releaseMembers` and the engines.
 */

const RUNS = isLong ? 2_000 : 30;

/** For all of them. */
const TIME_LIMIT_MS = isLong ? 1_800_000 : 60_000;

/** What happens to a database. The operator reconciles after most of it. */
type Happening =
  | { kind: "scale"; instances: number }
  | { kind: "plan" | "pause" | "resume" | "restartOperator" }
  | { kind: "loseNode" | "returnNode" | "killPod"; ordinal: number }
  /** The primary's node, whichever that is. */
  | { kind: "losePrimary" }
  | { kind: "wait"; steps: number }
  | { kind: "silence"; steps: number };

interface EngineCase {
  name: string;
  sizes: readonly number[];
  base: Database;
  model(cluster: Cluster, random: () => number): Model;
}

const base = (spec: Parameters<typeof exampleDatabase>[0]) => databaseOf({ project: exampleDatabase(spec) });
const cases: EngineCase[] = [
  {
    name: "PostgreSQL",
    sizes: [1, 2, 3],
    base: base({ instances: 3 }),
    model: (cluster, random) => new PostgresqlModel(cluster, random),
  },
  {
    name: "MariaDB",
    sizes: [3],
    base: base({ type: "mariadb", version: "11", plan: "db-basic", instances: 3 }),
    model: (cluster) => new MariadbModel(cluster),
  },
  {
    name: "Valkey",
    sizes: [1, 3],
    base: base({
      type: "valkey",
      version: "9.1.1",
      plan: "db-premium_plus",
      profile: "key_value",
      instances: undefined,
    }),
    model: (cluster) => new ValkeyModel(cluster),
  },
  {
    name: "ClickHouse",
    sizes: [2, 3],
    base: base({ type: "clickhouse", version: "26.8.6.5", plan: "analytics-business", instances: 3 }),
    model: (cluster) => new ClickHouseModel(cluster),
  },
];

function happenings(sizes: readonly number[]): fc.Arbitrary<Happening> {
  const ordinal = fc.integer({ min: 0, max: 2 });
  return fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant("scale" as const), instances: fc.constantFrom(...sizes) }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constantFrom("plan", "pause", "resume", "restartOperator", "losePrimary"),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constantFrom("loseNode", "returnNode", "killPod"), ordinal }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant("wait" as const), steps: fc.integer({ min: 1, max: 60 }) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant("silence" as const), steps: fc.integer({ min: 1, max: 10 }) }),
    },
  ) as fc.Arbitrary<Happening>;
}

/** Seconds pass, with writes, and with an operator that is a second behind now and then. */
async function pass(cluster: Cluster, steps: number, random: () => number, operator = true): Promise<void> {
  for (let i = 0; i < steps; i += 1) {
    if (operator && random() < 0.9) {
      await cluster.reconcile(random() < 0.2);
    }
    if (random() < 0.5) {
      cluster.write();
    }
    cluster.step();
  }
}

async function happen(cluster: Cluster, happening: Happening, random: () => number): Promise<void> {
  switch (happening.kind) {
    case "scale":
      cluster.instances = happening.instances;
      break;
    case "plan":
      cluster.plan += 1;
      break;
    case "pause":
      cluster.paused = true;
      break;
    case "resume":
      cluster.paused = false;
      break;
    case "restartOperator":
      cluster.restartOperator();
      break;
    case "losePrimary":
      cluster.loseNode(cluster.served()?.ordinal ?? 0);
      break;
    case "loseNode":
      cluster.loseNode(happening.ordinal);
      break;
    case "returnNode":
      cluster.down.delete(happening.ordinal);
      break;
    case "killPod":
      cluster.killPod(happening.ordinal);
      break;
    case "wait":
      await pass(cluster, happening.steps, random);
      return;
    case "silence":
      await pass(cluster, happening.steps, random, false);
      return;
    default:
  }
  await pass(cluster, 1 + Math.floor(random() * 4), random);
}

/** All nodes are back, nothing else happens. */
async function healed(cluster: Cluster, random: () => number): Promise<void> {
  cluster.down.clear();
  cluster.paused = false;
  for (let i = 0; i < 10; i += 1) {
    await pass(cluster, 30, random);
    if (cluster.served() && i > 2) {
      return;
    }
  }
}

/** The primary is another than the first one, and instances are reduced while it is paused. */
function reducedWhilePaused(sizes: readonly number[]): Happening[] {
  return [
    { kind: "losePrimary" },
    { kind: "wait", steps: 30 },
    { kind: "returnNode", ordinal: 0 },
    { kind: "wait", steps: 20 },
    { kind: "pause" },
    { kind: "scale", instances: Math.min(...sizes) },
    { kind: "resume" },
    { kind: "wait", steps: 120 },
    { kind: "scale", instances: Math.max(...sizes) },
    { kind: "wait", steps: 60 },
  ];
}

/** The one instance becomes several, and its node is lost as the others begin to copy it. */
function lostAsOthersBegin(sizes: readonly number[]): Happening[] {
  return [
    { kind: "returnNode", ordinal: 0 },
    { kind: "scale", instances: Math.min(...sizes) },
    { kind: "plan" },
    { kind: "scale", instances: Math.max(...sizes) },
    { kind: "loseNode", ordinal: 0 },
    { kind: "wait", steps: 8 },
    { kind: "plan" },
  ];
}

/** A rolling change is under way, and the primary that it chose is lost. */
function primaryLostInRollout(): Happening[] {
  return [
    { kind: "loseNode", ordinal: 1 },
    { kind: "returnNode", ordinal: 1 },
    { kind: "killPod", ordinal: 0 },
    { kind: "plan" },
    { kind: "losePrimary" },
  ];
}

/** The primary and the one before it are lost, instances are reduced, and the one that is kept returns without the newest writes. */
function reducedWithoutPrimary(sizes: readonly number[]): Happening[] {
  return [
    { kind: "loseNode", ordinal: 0 },
    { kind: "wait", steps: 1 },
    { kind: "losePrimary" },
    { kind: "scale", instances: Math.min(...sizes) },
    { kind: "returnNode", ordinal: 0 },
    { kind: "wait", steps: 12 },
  ];
}

describe.each(cases)("$name keeps every acknowledged write", ({ sizes, base: database, model }) => {
  test(
    "over any history of scale, plan, pause, resume, failover and lost nodes",
    async () => {
      let written = 0;
      const histories = fc.array(happenings(sizes), { maxLength: 14 });
      await fc.assert(
        fc.asyncProperty(histories, fc.integer({ min: 1, max: 2 ** 30 }), async (history, seed) => {
          const random = randomOf(seed);
          const cluster = new Cluster(database, (one) => model(one, random));
          await pass(cluster, 40, random);
          for (const happening of history) {
            await happen(cluster, happening, random);
          }
          await healed(cluster, random);
          written += cluster.acknowledged.length;
          const primary = cluster.served();
          expect(primary, "a primary that serves").toBeDefined();
          const kept = new Set(primary?.volume.log);
          expect(cluster.acknowledged.filter((id) => !kept.has(id))).toEqual([]);
        }),
        {
          numRuns: RUNS,
          examples: [
            [reducedWhilePaused(sizes), 1],
            [lostAsOthersBegin(sizes), 1],
            [primaryLostInRollout(), 353_050_347],
            [reducedWithoutPrimary(sizes), 221_618_912],
          ],
        },
      );
      // The histories are worth something.
      expect(written).toBeGreaterThan(RUNS * 20);
    },
    TIME_LIMIT_MS,
  );
});
