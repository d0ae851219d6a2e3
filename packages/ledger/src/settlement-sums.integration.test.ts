import { billingCycle, formatDecimal, parseDecimal } from "@slipway/crds";
import fc from "fast-check";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { jobRun, storageHour } from "../../../test/kit/ledger/charged-rows.ts";
import { startJobLedger, type TestJobLedger } from "../../../test/kit/ledger/job-ledger.ts";
import {
  type JobRunRow,
  listSettlements,
  recordJobRuns,
  recordStorageCharges,
  type Settlement,
  type StorageHour,
  settleCycle,
} from "./index.ts";

let test: TestJobLedger;

beforeAll(async () => {
  test = await startJobLedger();
});
afterAll(() => test?.stop());
beforeEach(() => test.empty());

const month = (index: number) => new Date(Date.UTC(2025, 9 + index, 1));
const organizations = ["alpha", "beta", "gamma"];

/** Decimal places that hold every amount here exactly. */
const SCALE = 20;
function units(decimal: string): bigint {
  const { units: digits, scale } = parseDecimal(decimal);
  return digits * 10n ** BigInt(SCALE - scale);
}
const CENT = 10n ** BigInt(SCALE);

/** Every organization's settlements, oldest first. */
async function settlements(): Promise<Map<string, Settlement[]>> {
  const lists = organizations.map(async (organizationId): Promise<[string, Settlement[]]> => {
    return [organizationId, (await listSettlements(test.ledger, { organizationId })).reverse()];
  });
  return new Map(await Promise.all(lists));
}

/** Charged cents and the last carry are what was to be paid; every settlement begins where the one before ended. */
function expectExact(list: Settlement[], owed: bigint): void {
  let carry = 0n;
  let charged = 0n;
  list.forEach((settlement, index) => {
    expect(units(settlement.carry_in)).toBe(carry);
    expect(units(settlement.total)).toBe(settlement.charged_cents * CENT + units(settlement.carry_out));
    const before = list[index - 1];
    if (before) {
      expect(settlement.cycle_start).toEqual(billingCycle(before.cycle_start).nextResetAt);
    }
    carry = units(settlement.carry_out);
    charged += settlement.charged_cents;
  });
  expect(carry).toBeLessThan(CENT);
  expect(charged * CENT + carry).toBe(owed);
}

describe("charged cents and the last carry", () => {
  const price = fc
    .tuple(fc.bigInt({ min: 0n, max: 10n ** 12n }), fc.integer({ min: 0, max: 18 }))
    .map(([digits, scale]) => formatDecimal({ units: digits, scale }));
  const organization = fc.constantFrom(...organizations);
  const cycle = fc.integer({ min: 0, max: 5 });
  const run = fc.record({
    kind: fc.constant("run" as const),
    organization,
    cycle,
    // From the month's first minute to its last, and across its end.
    minute: fc.oneof(fc.integer({ min: 0, max: 28 * 1440 }), fc.constantFrom(0, 28 * 1440 - 1)),
    delay: fc.integer({ min: 0, max: 130_000 }),
    seconds: fc.integer({ min: 0, max: 3_700 }),
    price,
  });
  const storage = fc.record({
    kind: fc.constant("storage" as const),
    organization,
    cycle,
    hour: fc.integer({ min: 0, max: 671 }),
    gb: fc.integer({ min: 0, max: 500 }),
    price,
  });
  const repeat = fc.record({ kind: fc.constant("repeat" as const), which: fc.nat(1_000) });
  const settle = fc.record({ kind: fc.constant("settle" as const), cycle });
  const steps = fc.array(
    fc.oneof({ weight: 6, arbitrary: run }, { weight: 3, arbitrary: storage }, repeat, settle),
    { minLength: 1, maxLength: 40 },
  );

  // Shows: docs/jobs.md#billing: at the end of a cycle whole cents are charged, the fraction is carried
  it("are the exact sum of all that was recorded, whatever came when, twice, or too late", async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (sequence) => {
        await test.empty();
        const runs = new Map<string, JobRunRow>();
        const hours = new Map<string, StorageHour>();
        for (const step of sequence) {
          if (step.kind === "settle") {
            await settleCycle(test.ledger, month(step.cycle));
          } else if (step.kind === "run") {
            const scheduled_at = new Date(month(step.cycle).getTime() + step.minute * 60_000);
            const row = jobRun({
              organization_id: step.organization,
              scheduled_at,
              started_at: new Date(scheduled_at.getTime() + step.delay),
              seconds: step.seconds,
              price_per_minute: step.price,
            });
            const [answer] = await recordJobRuns(test.ledger, [row]);
            const key = `${row.organization_id} ${row.id}`;
            expect(answer?.outcome).toMatch(runs.has(key) ? /already|differs/ : /recorded/);
            if (!runs.has(key)) {
              runs.set(key, row);
            }
          } else if (step.kind === "storage") {
            const from = new Date(month(step.cycle).getTime() + step.hour * 3_600_000);
            const row = storageHour({
              organization_id: step.organization,
              from,
              gb: step.gb,
              price_per_gb_hour: step.price,
            });
            const [answer] = await recordStorageCharges(test.ledger, [row]);
            const key = `${row.organization_id} ${row.hour_index}`;
            expect(answer?.outcome).toMatch(hours.has(key) ? /already|differs/ : /recorded/);
            if (!hours.has(key)) {
              hours.set(key, row);
            }
          } else {
            const known = [...runs.values()];
            const again = known.slice(step.which % (known.length + 1));
            const answers = await recordJobRuns(test.ledger, again);
            expect(answers.every(({ outcome }) => outcome === "already")).toBe(true);
            await recordStorageCharges(test.ledger, [...hours.values()]);
          }
        }
        await settleCycle(test.ledger, month(7));
        expect(await settleCycle(test.ledger, month(7))).toBe(0);
        const rows = [...runs.values(), ...hours.values()];
        for (const [organizationId, list] of await settlements()) {
          const mine = rows.filter((row) => row.organization_id === organizationId);
          expectExact(
            list,
            mine.reduce((sum, row) => sum + units(row.amount), 0n),
          );
        }
      }),
      { numRuns: 60 },
    );
  }, 240_000);
});

describe("charges while cycles are settled", () => {
  it("are neither lost nor counted twice", async () => {
    const pools = [test.ledger, test.connect(), test.connect()];
    let sent = 0n;
    let settling = true;
    const write = async (writer: number) => {
      const pool = pools[writer % 3] as typeof test.ledger;
      for (let round = 0; settling || round < 20; round += 1) {
        const rows = Array.from({ length: 20 }, (_, index) =>
          jobRun({
            organization_id: organizations[index % 3] as string,
            project_id: `p${writer}`,
            scheduled_at: new Date(month(index % 6).getTime() + (round * 20 + index) * 60_000),
            price_per_minute: "0.37",
          }),
        );
        const answers = await recordJobRuns(pool, rows);
        expect(answers.every(({ outcome }) => outcome === "recorded")).toBe(true);
        sent += rows.reduce((sum, row) => sum + units(row.amount), 0n);
      }
    };
    const settleAll = async () => {
      try {
        for (const cycle of [0, 1, 2, 3, 4, 5]) {
          await settleCycle(pools[2] as typeof test.ledger, month(cycle));
        }
      } finally {
        settling = false;
      }
    };
    await Promise.all([...Array.from({ length: 6 }, (_, writer) => write(writer)), settleAll()]);
    await settleCycle(test.ledger, month(7));

    let paid = 0n;
    for (const list of (await settlements()).values()) {
      expectExact(
        list,
        list.reduce((sum, { charged_cents }) => sum + charged_cents * CENT, 0n) +
          units(list.at(-1)?.carry_out ?? "0"),
      );
      paid += list.reduce((sum, { charged_cents }) => sum + charged_cents * CENT, 0n);
      paid += units(list.at(-1)?.carry_out ?? "0");
    }
    expect(paid).toBe(sent);
    const { rows: late } = await sql<{ late: number }>`
      select count(*)::int as late from charges where settle_cycle > cycle_start`.execute(test.ledger);
    expect(late[0]?.late).toBeGreaterThan(0);
  });
});
