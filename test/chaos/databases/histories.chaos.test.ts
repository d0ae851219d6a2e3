import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { afterAll, expect, test, vi } from "vitest";
import { recordFigures } from "../../../hack/testing/figures.ts";
import { Writer } from "../../e2e/support/acknowledged.ts";
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
import { isLong } from "../../kit/long.ts";
import {
  clickhouseDriver,
  type Engine,
  mariadbDriver,
  postgresqlDriver,
  valkeyDriver,
} from "../support/engines.ts";

/**
 * Histories of scale, plan, pause, resume and lost pods that a seed generates, over real engines: whatever is asked of a database and
 * whatever befalls it, every acknowledged row is there at the end. test/kit/histories tries thousands on models.
 */

vi.setConfig({ testTimeout: 3_600_000 });

const engines = [postgresqlDriver, mariadbDriver, valkeyDriver, clickhouseDriver];
const STEPS = 8;
const SETTLED_MS = 600_000;
/** In which rows are written between what happens. */
const CALM_MS = 3_000;
const seed = Number(process.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

/** What happens, and whether the database settles before the next step. */
interface Step {
  readonly kind: "scale" | "plan" | "pause" | "losePrimary" | "losePod";
  /** Which of the sizes, plans or instances. */
  readonly which: number;
  readonly settles: boolean;
}

function historyOf({ sizes, plans }: Engine): readonly Step[] {
  const kinds: Step["kind"][] = ["pause", "losePrimary", "losePod"];
  if (sizes.length > 0) {
    kinds.push("scale");
  }
  if (plans.length > 0) {
    kinds.push("plan");
  }
  const step = fc.record({
    kind: fc.constantFrom(...kinds),
    which: fc.nat({ max: 2 }),
    settles: fc.boolean(),
  });
  const [history = []] = fc.sample(fc.array(step, { minLength: STEPS, maxLength: STEPS }), {
    seed,
    numRuns: 1,
  });
  return history;
}

const pausing = (op: string, value: boolean) => [{ op, path: "/spec/paused", value }];

/** Deletes a pod by force, where there is one of that name. */
async function lose({ namespace }: DatabaseProject, name: string | undefined): Promise<void> {
  if (!name) {
    return;
  }
  await cluster.core
    .deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 })
    .catch((error: unknown) => {
      if ((error as { code?: number }).code !== 404) {
        throw error;
      }
    });
}

async function take({ kind, which }: Step, engine: Engine, project: DatabaseProject): Promise<void> {
  const chosen = <T>(all: readonly T[]): T | undefined => all[which % all.length];
  switch (kind) {
    case "scale":
      await patchDatabase(project, chosen(engine.sizes) ?? []);
      break;
    case "plan":
      await patchDatabase(project, chosen(engine.plans) ?? []);
      break;
    case "pause":
      await patchDatabase(project, pausing("add", true));
      // One that is resumed while its instances still stop is a history, too.
      if (which > 0) {
        await eventually(async () => expect(await podsOfDatabase(project)).toEqual([]), {
          within: SETTLED_MS,
        });
      }
      await patchDatabase(project, pausing("replace", false));
      break;
    case "losePrimary":
      await lose(project, (await readDatabase(project)).status?.database?.primary);
      break;
    default:
      await lose(project, `${project.id}-${which}`);
  }
}

test.skipIf(!isLong).concurrent.for(engines)(
  "$name keeps every acknowledged row over a generated history (--long)",
  async (engine) => {
    const history = historyOf(engine);
    const steps = history.map(({ kind, which, settles }) => `${kind} ${which}${settles ? "" : " unsettled"}`);
    console.log(`${engine.name}: SLIPWAY_TEST_SEED=${seed}: ${steps.join(", ")}`);
    const project = await createDatabase(call, engine.body());
    made.push(project.id);
    await untilReady(project, SETTLED_MS);
    const writer = new Writer(() => engine.open(project));
    /** From before a step until it has settled, of an engine that acknowledges what others do not have yet. */
    const unsure: { from: number; to: number }[] = [];
    try {
      await writer.untilWrites();
      for (const step of history) {
        const from = performance.now() - engine.windowMs;
        await take(step, engine, project);
        if (!step.settles && engine.windowMs === 0) {
          continue;
        }
        await untilReady(project, SETTLED_MS);
        await writer.untilWrites(SETTLED_MS);
        if (engine.windowMs > 0) {
          unsure.push({ from, to: performance.now() });
        }
        await sleep(CALM_MS);
      }
      await untilReady(project, SETTLED_MS);
      await writer.untilWrites(SETTLED_MS);
    } finally {
      await writer.stop();
    }
    const kept = await eventually(() => engine.rows(project));
    const { acknowledged } = writer;
    const sure = acknowledged.filter(({ at }) => !unsure.some(({ from, to }) => at >= from && at <= to));
    await recordFigures("chaos", `${engine.name}: a generated history`, {
      steps: history.length,
      "rows acknowledged": acknowledged.length,
      "of them for good": sure.length,
      "of those lost": sure.filter(({ id }) => !kept.has(id)).length,
    });
    expect(sure.filter(({ id }) => !kept.has(id))).toEqual([]);
  },
);
