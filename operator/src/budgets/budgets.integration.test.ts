import { resources } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import {
  connectLedger,
  deleteBudget,
  findBudget,
  type Ledger,
  migrateToLatest,
  setBudget,
} from "@slipway/ledger";
import { afterAll, beforeAll, expect, test } from "vitest";
import { insertCharge } from "../../../test/kit/ledger/charge.ts";
import {
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  type TestProcess,
} from "../../../test/kit/operator/harness.ts";
import { exampleWorker } from "../../../test/kit/operator/projects.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import { projectResource } from "../resources.ts";
import { type BudgetLedger, budgetLedger } from "./ports.ts";

/** A hard cap over a real kube-apiserver and a real PostgreSQL. */

const namespace = "slipway-org-capped";

/** What a test does to the ledger as the operator has it. */
const world: { away: boolean; at: (now: Date) => Date; beforeWrite: () => Promise<void>; rounds: number } = {
  away: false,
  at: (now) => now,
  /** Between what a round reads and what it writes. */
  beforeWrite: async () => {},
  /** That have begun. */
  rounds: 0,
};
function inWorld(real: BudgetLedger): BudgetLedger {
  let isRead = false;
  return {
    ...real,
    list: (page, options) => {
      if (options?.hardCap) {
        world.rounds += 1;
        isRead = false;
      }
      return world.away ? Promise.reject(new Error("the ledger is away")) : real.list(page, options);
    },
    exhausted: async (now, organizations) => {
      if (isRead) {
        await world.beforeWrite();
      }
      isRead = true;
      return real.exhausted(world.at(now), organizations);
    },
  };
}
/** Until so many rounds have begun and ended since. */
const rounds = async (count: number) => {
  const end = world.rounds + count + 1;
  await eventually(async () => world.rounds >= end);
};

let cluster: TestCluster;
let postgres: TestPostgres;
let ledger: Ledger;
let operator: TestProcess;
beforeAll(async () => {
  [cluster, postgres] = await Promise.all([startCluster(), startPostgres()]);
  ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(ledger);
  operator = await startOperator(cluster, {
    listOrganizations: async () => ["capped"],
    budgets: { ledger: inWorld(budgetLedger(ledger)), periodMs: 100 },
  });
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
});
afterAll(async () => {
  await operator?.stop();
  await ledger?.destroy();
  await postgres?.stop();
  await cluster?.stop();
});

const specOf = async (name: string) => {
  const { spec } = await cluster.client.get<Project>(projectResource, { namespace, name });
  return [spec.paused ?? false, spec.pausedBy];
};
const until = (name: string, paused: boolean, by?: string) =>
  eventually(async () => {
    const [isPaused, pausedBy] = await specOf(name);
    return isPaused === paused && pausedBy === by;
  });

const budget = (amount: string) =>
  setBudget(ledger, "capped", { amount, notices: [50], hardCap: true }, new Date());

test("a reached cap pauses what runs, and resumes that alone once the budget is larger or removed", async () => {
  for (const [name, spec] of [
    ["pruns", {}],
    ["pstopped", { paused: true }],
  ] as const) {
    await cluster.client.create(projectResource, exampleWorker({ namespace, name }, spec));
  }
  await insertCharge(ledger, { organizationId: "capped", amount: "100" });
  const budget = (amount: string) =>
    setBudget(ledger, "capped", { amount, notices: [50], hardCap: true }, new Date());
  await budget("100");
  await until("pruns", true, "budget");
  await eventually(async () => (await findBudget(ledger, "capped", new Date()))?.reached.length === 2);
  expect(await specOf("pstopped")).toEqual([true, undefined]);
  await budget("101");
  await until("pruns", false);
  await budget("99");
  await until("pruns", true, "budget");
  await deleteBudget(ledger, "capped");
  await until("pruns", false);
  expect(await specOf("pstopped")).toEqual([true, undefined]);
});

// Shows: docs/budgets.md#the-hard-cap: a project that it paused | has `paused_by: budget`
test("the next cycle resumes what the cap of this one has paused", async () => {
  await budget("99");
  await until("pruns", true, "budget");
  world.at = (now) => new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1));
  await until("pruns", false);
  world.at = (now) => now;
  await until("pruns", true, "budget");
});

test("nothing is resumed while the ledger is away, whatever it would read", async () => {
  await until("pruns", true, "budget");
  world.away = true;
  await deleteBudget(ledger, "capped");
  await rounds(3);
  expect(await specOf("pruns")).toEqual([true, "budget"]);
  world.away = false;
  await until("pruns", false);
});

// Shows: docs/budgets.md#the-hard-cap: a budget that is set during a round
test("a cap that is raised during a round pauses nothing", async () => {
  const raised = Promise.withResolvers<void>();
  world.beforeWrite = async () => {
    await budget("101");
    raised.resolve();
  };
  const before = await cluster.client.get<Project>(projectResource, { namespace, name: "pruns" });
  await budget("99");
  await raised.promise;
  await rounds(2);
  const after = await cluster.client.get<Project>(projectResource, { namespace, name: "pruns" });
  expect(after.metadata.generation).toBe(before.metadata.generation);
});

// Shows: docs/budgets.md#the-hard-cap: a change by a user in between | holds
test("a user's pause between what a round reads and writes holds", async () => {
  const paused = Promise.withResolvers<void>();
  world.beforeWrite = async () => {
    world.beforeWrite = async () => {};
    await cluster.client.patch(projectResource, { namespace, name: "pruns" }, { spec: { paused: true } });
    paused.resolve();
  };
  await budget("99");
  await paused.promise;
  await rounds(2);
  expect(await specOf("pruns")).toEqual([true, undefined]);
  await deleteBudget(ledger, "capped");
  await rounds(2);
  expect(await specOf("pruns")).toEqual([true, undefined]);
});
