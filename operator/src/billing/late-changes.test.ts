import type { PlanCharge } from "@slipway/crds";
import type { AdjustedProject } from "@slipway/ledger";
import { silentLogger } from "@slipway/process";
import { expect, test } from "vitest";
import { adjustCharges } from "./late-changes.ts";
import type { PlanChargeLedger } from "./plan-charge-ledger.ts";
import { SlowProjects } from "./slow-projects.ts";

const HOUR = 3_600_000;
const state = { plan: "basic", paymentMode: "hourly", renews: true, paused: false, billedGb: 0 } as const;
const prices = { hourly: "3", monthly: "2160", yearly: "25920", refund: "none" } as const;
const lists = [{ from: 0, gbHour: "0", plans: { basic: prices } }];
const hour = (index: number): PlanCharge => ({
  ...{ key: `u1/instance_hour/${index}/0`, kind: "instance_hour", plan: "basic", instance: 0 },
  ...{ from: index * HOUR, to: (index + 1) * HOUR, finalAt: (index + 1) * HOUR, price: "3", amount: "3" },
});

/** Two hours were charged of a project whose instance was there in the first one alone. */
async function adjusted(ledger: Partial<PlanChargeLedger> = {}, known = lists, slow = new SlowProjects()) {
  const outcomes: string[] = [];
  const recorded: AdjustedProject[] = [];
  const project = { organizationId: "alpha", projectId: "shop", projectUid: "u1", arrivals: 2 };
  const late = { from: new Date(HOUR), arrival: 2, pass: 0 };
  await adjustCharges(
    { project: { ...project, until: new Date(2 * HOUR + 1), late }, lists: known },
    {
      ledger: {
        histories: async () => [
          {
            projectUid: "u1",
            changes: [
              { ...state, at: 0, instances: 1 },
              { ...state, at: HOUR, instances: 0 },
            ],
          },
        ],
        recorded: async () => [hour(0), hour(1)],
        adjust: async (one) => recorded.push(one),
        ...ledger,
      },
      slow,
      log: silentLogger,
      onOutcome: (outcome, count) => outcomes.push(`${outcome} ${count}`),
    },
  );
  return { outcomes, charges: recorded[0]?.charges };
}

test("what a late change makes cheaper is given as credit", async () => {
  expect(await adjusted()).toEqual({
    outcomes: ["adjusted 1"],
    charges: [
      {
        ...hour(1),
        kind: "credit",
        key: "u1/credit/late/0/instance_hour/1/0",
        adjusts: "u1/instance_hour/1/0",
      },
    ],
  });
});

test("one that is superseded, or that PostgreSQL ends for another transaction, is computed again, and one that is refused is counted", async () => {
  const failing = (code: string) => ({
    adjust: () => Promise.reject(Object.assign(new Error("refused"), { code })),
  });
  expect((await adjusted({ adjust: async () => undefined })).outcomes).toEqual([]);
  expect((await adjusted(failing("40P01"))).outcomes).toEqual([]);
  expect((await adjusted(failing("23514"))).outcomes).toEqual(["refused 1"]);
  expect((await adjusted({}, [])).outcomes).toEqual(["refused 1"]);
  await expect(adjusted(failing("57P01"))).rejects.toMatchObject({ code: "57P01" });
});

// Shows: docs/billing.md#late-changes: from the third time in a row on
test.each(["57014", "55P03"])("one that takes too long (%s) is counted when it repeats", async (code) => {
  const slow = new SlowProjects();
  const failing = { adjust: () => Promise.reject(Object.assign(new Error("too slow"), { code })) };
  const counts: number[] = [];
  for (const ledger of [failing, failing, {}, failing, failing, failing, failing]) {
    const { outcomes } = await adjusted(ledger, lists, slow);
    counts.push(outcomes.filter((outcome) => outcome === "refused 1").length);
  }
  expect(counts).toEqual([0, 0, 0, 0, 0, 1, 1]);
});
