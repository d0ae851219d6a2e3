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
import { budgetLedger } from "./ports.ts";

/** A hard cap over a real kube-apiserver and a real PostgreSQL. */

const namespace = "slipway-org-capped";

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
    budgets: { ledger: budgetLedger(ledger), periodMs: 100 },
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
