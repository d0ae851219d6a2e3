import { type KubeClient, KubeError } from "@slipway/controller-runtime";
import { type BillableState, type PriceList, type Project, planCharges, sumDecimals } from "@slipway/crds";
import { silentLogger, systemClock } from "@slipway/process";
import { expect, test } from "vitest";
import { PAGE_SIZE } from "../organization-rounds.ts";
import { capAction } from "./cap.ts";
import { BudgetCaps } from "./caps.ts";
import { recordCrossings } from "./crossings.ts";

const project = (spec: Partial<Project["spec"]>, name = "pshop", organization = "acme"): Project =>
  ({
    metadata: { name, namespace: `slipway-org-${organization}`, uid: `u-${name}`, resourceVersion: "7" },
    spec: { type: "http", ...spec },
  }) as Project;

interface World {
  /** Organizations with a hard cap; those that are read as exhausted unless given. */
  capped?: string[];
  /** What patches are refused with. */
  refused?: Error;
  hasSynced?: boolean;
  /** Milliseconds that each patch takes. */
  patchMs?: number;
}

/** Caps over projects in memory; the ledger reads some organizations as exhausted, and as each array in turn, the last one from then on. */
function capsOf(projects: Project[], reads: (string[] | Error)[], world: World = {}) {
  const patches: unknown[] = [];
  const actions: string[] = [];
  const queries: (readonly string[])[] = [];
  let failures = 0;
  let elapsed = 0;
  const exhausted = reads.flatMap((read) => (read instanceof Error ? [] : read));
  const capped = (world.capped ?? [...new Set(exhausted)]).toSorted();
  const caps = new BudgetCaps({
    ledger: {
      list: async ({ after, limit }) => capped.filter((id) => id > after).slice(0, limit),
      exhausted: async (_now, ids) => {
        const read = reads[Math.min(queries.length, reads.length - 1)] ?? [];
        queries.push(ids);
        if (read instanceof Error) {
          throw read;
        }
        return read.filter((id) => ids.includes(id));
      },
    },
    client: {
      patch: async (_resource: unknown, ref: { name: string }, patch: object) => {
        elapsed += world.patchMs ?? 0;
        if (world.refused) {
          throw world.refused;
        }
        patches.push({ name: ref.name, ...patch });
        return {};
      },
    } as unknown as KubeClient,
    projects: { hasSynced: world.hasSynced ?? true, list: () => projects, observe: () => {} } as never,
    owns: (namespace) => namespace !== "slipway-org-elsewhere",
    trustedClock: systemClock,
    clock: {
      ...systemClock,
      monotonic: () => elapsed,
      setTimeout: (callback) => systemClock.setTimeout(callback, 0),
    },
    log: silentLogger,
    onAction: (action) => actions.push(action),
    onFailure: () => {
      failures += 1;
    },
  });
  const run = () => caps.enforce(new AbortController().signal);
  return { run, patches, actions, queries, failures: () => failures };
}
/** Organizations of so many pages of the ledger: full ones, and a last one. */
const pagesOf = (count: number) =>
  Array.from({ length: (count - 1) * PAGE_SIZE + 1 }, (_, index) => `a${`${index}`.padStart(5, "0")}`);

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
  const { run, patches, actions, queries } = capsOf(projects, [["acme", "elsewhere"]], {
    capped: [...pagesOf(2), "acme", "elsewhere"],
  });
  expect(await run()).toBe(true);
  expect(queries.map((ids) => ids.length)).toEqual([PAGE_SIZE, 3, 1, 1]);
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
  const conflicting = capsOf(projects, [["acme"]], {
    refused: new KubeError({ status: 409, reason: "Conflict", message: "changed" }),
  });
  expect(await conflicting.run()).toBe(false);
  expect([conflicting.actions, conflicting.failures()]).toEqual([[], 0]);
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
  expect(await run()).toBe(true);
  expect(patches).toEqual([]);
});

// Shows: docs/budgets.md#the-hard-cap: a budget that is set during a round
test("a cap that was raised, or reached, since it was read changes nothing of its projects", async () => {
  const projects = [project({}), project({ paused: true, pausedBy: "budget" }, "pback", "beta")];
  const { run, patches, queries } = capsOf(projects, [["acme"], ["beta"]], { capped: ["acme", "beta"] });
  expect(await run()).toBe(true);
  expect(patches).toEqual([]);
  expect(queries).toEqual([["acme", "beta"], ["acme"], ["beta"]]);
});

// Shows: docs/budgets.md#what-is-promised: an organization whose thresholds cannot be recorded
test("a page that fails keeps no other back, and projects of which nothing is known stay as they are", async () => {
  const capped = [...pagesOf(1), "acme"];
  const first = Array.from({ length: PAGE_SIZE }, (_, index) => `0${`${index}`.padStart(4, "0")}`);
  const projects = [
    project({}),
    project({}, "punknown", "00007"),
    project({ paused: true, pausedBy: "budget" }, "pcapped", "00008"),
    project({ paused: true, pausedBy: "budget" }, "pback", "beta"),
  ];
  const { run, patches, failures } = capsOf(projects, [new Error("too slow"), ["acme"]], {
    capped: [...first, ...capped],
  });
  expect(await run()).toBe(false);
  expect(patches).toMatchObject([{ name: "pshop" }, { name: "pback" }]);
  expect(failures()).toBe(1);
});

test("nothing is written while the ledger is away", async () => {
  const { run, patches } = capsOf([project({})], [new Error("away")], { capped: pagesOf(6) });
  await expect(run()).rejects.toThrow("away");
  expect(patches).toEqual([]);
});

test.each([
  ["a cache that is not synced", { hasSynced: false }, 0],
  ["a write that fails", { refused: new Error("refused") }, 0],
  ["writes that take too long", { patchMs: 2_000 }, 8],
] as const)("a round is not complete with %s", async (_, world, written) => {
  const many = Array.from({ length: 12 }, (__, index) => project({}, `p${index}`));
  const { run, patches } = capsOf(many, [["acme"]], world);
  expect(await run()).toBe(false);
  expect(patches).toHaveLength(written);
});

test("many projects of an organization do not keep one of another waiting", async () => {
  const many = Array.from({ length: 500 }, (_, index) => project({}, `p${index}`));
  const { run, patches } = capsOf([...many, project({}, "pother", "other")], [["acme", "other"]]);
  expect(await run()).toBe(false);
  expect(patches).toHaveLength(400);
  expect(patches.slice(0, 8)).toContainEqual(expect.objectContaining({ name: "pother" }));
});

// Shows: docs/budgets.md#the-hard-cap: What is charged after the pause
test.each([
  ["hourly", "11:11:00", "6"],
  ["hourly", "11:59:59", "6"],
  // The first term is over at 10:00 on April 2nd; the next one has begun before the pause.
  ["monthly", "11:11:00", "4320"],
  ["monthly", "09:59:59", "2160"],
] as const)(
  "paid %s, a project that is paused at %s is charged for what had begun, and nothing else",
  (paymentMode, pausedAt, expected) => {
    const day = paymentMode === "monthly" ? "2026-04-02" : "2026-03-02";
    const begin = Date.parse("2026-03-02T10:00:00Z");
    const state: BillableState = {
      ...{ plan: "basic", paymentMode, renews: true },
      ...{ instances: 1, paused: false, billedGb: 0 },
    };
    const prices = { hourly: "3", monthly: "2160", yearly: "25920", refund: "none" } as const;
    const lists: PriceList[] = [{ from: 0, gbHour: "0", plans: { basic: prices } }];
    const changes = [
      { ...state, at: begin },
      { ...state, at: Date.parse(`${day}T${pausedAt}Z`), paused: true },
    ];
    const until = Date.parse("2026-06-01T00:00:00Z");
    const charges = planCharges({ projectUid: "u", changes }, lists, { until });
    expect(sumDecimals(charges.map(({ amount }) => amount))).toBe(expected);
  },
);

/** Crossings of a ledger in memory, in which each call of some organizations fails. */
function crossingsOf(ids: string[], failing: { page?: boolean; organizations?: string[] }) {
  const recorded: string[] = [];
  let failures = 0;
  const options = {
    ledger: {
      list: async ({ after, limit }: { after: string; limit: number }) =>
        ids.filter((id) => id > after).slice(0, limit),
      unrecorded: async (_now: Date, some: readonly string[]) => {
        if (failing.page && some.includes(ids[0] ?? "")) {
          throw new Error("too slow");
        }
        return some.filter((id) => id.endsWith("7"));
      },
      record: async (_now: Date, id: string) => {
        if (failing.organizations?.includes(id)) {
          throw new Error("refused");
        }
        recorded.push(id);
        return 1;
      },
    },
    trustedClock: systemClock,
    clock: { ...systemClock, setTimeout: (callback: () => void) => systemClock.setTimeout(callback, 0) },
    log: silentLogger,
    onRecorded: () => {},
    onFailure: () => {
      failures += 1;
    },
  };
  const run = () => recordCrossings(options, new AbortController().signal);
  return { run, recorded, failures: () => failures };
}

// Shows: docs/budgets.md#what-is-promised: an organization whose thresholds cannot be recorded
test("an organization whose crossing cannot be recorded, and a page that cannot be compared, keep no other back", async () => {
  const ids = pagesOf(2);
  const one = crossingsOf(ids, { organizations: ["a00007"] });
  expect(await one.run()).toBe(false);
  expect(one.recorded).toHaveLength(PAGE_SIZE / 10 - 1);
  const page = crossingsOf([...ids, "a00507"], { page: true });
  expect(await page.run()).toBe(false);
  expect([page.recorded, page.failures()]).toEqual([["a00507"], 1]);
  const none = crossingsOf(ids, {});
  expect(await none.run()).toBe(true);
  await expect(crossingsOf(ids, { organizations: ids }).run()).rejects.toThrow("refused");
});
