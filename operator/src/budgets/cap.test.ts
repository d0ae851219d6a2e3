import { type KubeClient, KubeError } from "@slipway/controller-runtime";
import {
  type BillableState,
  billingCycle,
  type PriceList,
  type Project,
  planCharges,
  sumDecimals,
} from "@slipway/crds";
import { silentLogger, systemClock } from "@slipway/process";
import { expect, test } from "vitest";
import { capAction } from "./cap.ts";
import { BudgetCaps } from "./caps.ts";

const project = (spec: Partial<Project["spec"]>, name = "pshop", organization = "acme"): Project =>
  ({
    metadata: { name, namespace: `slipway-org-${organization}`, uid: `u-${name}`, resourceVersion: "7" },
    spec: { type: "http", ...spec },
  }) as Project;

/** Caps over projects in memory; the ledger has so many pages of exhausted organizations. */
function capsOf(projects: Project[], pages: string[][], refused?: Error) {
  const patches: unknown[] = [];
  const actions: string[] = [];
  let reads = 0;
  const caps = new BudgetCaps({
    ledger: {
      exhausted: async (_now, { after }) => {
        reads += 1;
        const page = after === "" ? 0 : Number(after);
        return {
          organizationIds: pages[page] ?? [],
          next: page + 1 < pages.length ? `${page + 1}` : undefined,
        };
      },
    },
    client: {
      patch: async (_resource: unknown, ref: { name: string }, patch: object) => {
        if (refused) {
          throw refused;
        }
        patches.push({ name: ref.name, ...patch });
        return {};
      },
    } as unknown as KubeClient,
    projects: { hasSynced: true, list: () => projects, observe: () => {} } as never,
    owns: (namespace) => namespace !== "slipway-org-elsewhere",
    trustedClock: systemClock,
    clock: { ...systemClock, setTimeout: (callback) => systemClock.setTimeout(callback, 0) },
    log: silentLogger,
    onAction: (action) => actions.push(action),
  });
  const run = () => caps.enforce(new AbortController().signal);
  return { run, patches, actions, reads: () => reads };
}

// Shows: docs/budgets.md#the-hard-cap: at 100 % | every project
// Shows: docs/budgets.md#the-hard-cap: a project that a user paused | stays paused
// Shows: docs/budgets.md#the-hard-cap: a project that it paused | has `paused_by: budget`
test("a cap pauses what runs, and resumes what it has paused", () => {
  const running = project({});
  const byUser = project({ paused: true });
  const byBudget = project({ paused: true, pausedBy: "budget" });
  const resumedElsewhere = project({ pausedBy: "budget" });
  const leaving = {
    ...running,
    metadata: { ...running.metadata, deletionTimestamp: "2026-11-20T12:00:00Z" },
  };
  const all = [running, byUser, byBudget, resumedElsewhere, leaving];
  expect(all.map((one) => capAction(one, true))).toEqual(["pause", undefined, undefined, "pause", undefined]);
  expect(all.map((one) => capAction(one, false))).toEqual([
    undefined,
    undefined,
    "resume",
    "resume",
    undefined,
  ]);
});

// Shows: docs/budgets.md#the-hard-cap: a change by a user in between | holds
test("a cap writes the version that it has read, of its own projects, after it has read all budgets", async () => {
  const projects = [
    project({}, "pother", "other"),
    project({ paused: true, pausedBy: "budget" }, "pback", "beta"),
    project({}, "pshop"),
    project({}, "pfar", "elsewhere"),
  ];
  const { run, patches, actions, reads } = capsOf(projects, [["acme"], ["elsewhere"]]);
  await run();
  expect(reads()).toBe(2);
  expect(patches).toEqual([
    {
      name: "pshop",
      metadata: { uid: "u-pshop", resourceVersion: "7" },
      spec: { paused: true, pausedBy: "budget" },
    },
    {
      name: "pback",
      metadata: { uid: "u-pback", resourceVersion: "7" },
      spec: { paused: null, pausedBy: null },
    },
  ]);
  expect(actions).toEqual(["pause", "resume"]);
  const conflicting = capsOf(
    projects,
    [["acme"]],
    new KubeError({ status: 409, reason: "Conflict", message: "changed" }),
  );
  await expect(conflicting.run()).resolves.toBeUndefined();
  expect(conflicting.actions).toEqual([]);
});

// Shows: docs/budgets.md#what-is-promised: nothing is written while nothing is reached
test("a cap writes nothing where projects are as they should be", async () => {
  const { run, patches } = capsOf(
    [
      project({}),
      project({ paused: true }, "pold"),
      project({ paused: true, pausedBy: "budget" }, "pcap", "beta"),
    ],
    [["beta"]],
  );
  await run();
  expect(patches).toEqual([]);
});

test("many projects of an organization do not keep one of another waiting", async () => {
  const many = Array.from({ length: 500 }, (_, index) => project({}, `p${index}`));
  const { run, patches } = capsOf([...many, project({}, "pother", "other")], [["acme", "other"]]);
  await run();
  expect(patches).toHaveLength(400);
  expect(patches.slice(0, 2)).toMatchObject([{ name: "p0" }, { name: "pother" }]);
});

test("a project that is paused within a minute is charged for the hour that had begun, and no other", () => {
  const at = (time: string) => Date.parse(`2026-03-02T${time}Z`);
  const state: BillableState = {
    ...{ plan: "basic", paymentMode: "hourly", renews: true },
    ...{ instances: 1, paused: false, billedGb: 0 },
  };
  const prices = { hourly: "3", monthly: "2160", yearly: "25920", refund: "none" } as const;
  const lists: PriceList[] = [{ from: 0, gbHour: "0", plans: { basic: prices } }];
  const charged = (pausedAt: number) =>
    sumDecimals(
      planCharges(
        {
          projectUid: "u",
          changes: [
            { ...state, at: at("10:00:00") },
            { ...state, at: pausedAt, paused: true },
          ],
        },
        lists,
        { until: billingCycle(new Date(at("10:00:00"))).nextResetAt.getTime() },
      ).map(({ amount }) => amount),
    );
  // Reached by the charge of the first hour, which is recorded ten minutes after its end.
  expect(charged(at("11:11:00"))).toBe("6");
  expect(charged(at("11:59:59"))).toBe("6");
});
