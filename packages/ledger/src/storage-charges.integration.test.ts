import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { storageHour } from "../../../test/kit/ledger/charged-rows.ts";
import { startJobLedger, type TestJobLedger } from "../../../test/kit/ledger/job-ledger.ts";
import { lastStorageHour, recordStorageCharges, type StorageHour } from "./index.ts";

let test: TestJobLedger;

beforeAll(async () => {
  test = await startJobLedger();
});
afterAll(() => test?.stop());
beforeEach(() => test.empty());

const organization_id = "acme";
const hours = (count: number, facts: Partial<StorageHour> = {}) =>
  Array.from({ length: count }, (_, index) =>
    storageHour({ organization_id, from: new Date(Date.UTC(2026, 0, 31, 20 + index)), ...facts }),
  );
const outcomes = async (rows: StorageHour[]) =>
  (await recordStorageCharges(test.ledger, rows)).map(({ outcome }) => outcome);

async function charges(): Promise<unknown[]> {
  const { rows } = await sql<{ text: string }>`
    select concat_ws(' ', cycle_start, count(*), trim_scale(sum(amount))) as text
    from charges where kind = 'storage' group by cycle_start order by cycle_start`.execute(test.ledger);
  return rows.map(({ text }) => text);
}

describe("hours of storage", () => {
  it("are charged in the cycle in which they began, once, however often they come", async () => {
    expect(await outcomes(hours(6))).toEqual(Array(6).fill("recorded"));
    expect(await outcomes(hours(7))).toEqual([...Array(6).fill("already"), "recorded"]);
    expect(await charges()).toEqual(["2026-01-01 4 0.48", "2026-02-01 3 0.36"]);
  });

  it("are charged once when several processes send them", async () => {
    const pools = [test.ledger, test.connect(), test.connect()];
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) => {
        const rows = hours(48);
        return recordStorageCharges(
          pools[index % 3] as typeof test.ledger,
          index % 2 ? rows : rows.reverse(),
        );
      }),
    );
    expect(answers.flat().filter(({ outcome }) => outcome === "recorded")).toHaveLength(48);
    expect(await charges()).toEqual(["2026-01-01 4 0.48", "2026-02-01 44 5.28"]);
  });

  it("that are recorded again with another amount are reported, and the first ones are kept", async () => {
    await recordStorageCharges(test.ledger, hours(2));
    expect(await outcomes(hours(2, { gb: 20, amount: "0.24" }))).toEqual(["differs", "differs"]);
    expect(await charges()).toEqual(["2026-01-01 2 0.24"]);
  });

  it("of a wrong amount are not recorded", async () => {
    await expect(recordStorageCharges(test.ledger, hours(1, { amount: "0.13" }))).rejects.toThrow(
      /amount_of_gb/,
    );
    expect(await charges()).toEqual([]);
  });

  it("that have not begun by the ledger's time are refused", async () => {
    const from = (ms: number) => new Date(Date.now() + ms);
    await recordStorageCharges(test.ledger, [storageHour({ organization_id, from: from(30_000) })]);
    const ahead = recordStorageCharges(test.ledger, [
      storageHour({ organization_id, from: from(3_600_000) }),
    ]);
    await expect(ahead).rejects.toMatchObject({ code: "23514", constraint: "nothing_ahead" });
    expect(await charges()).toHaveLength(1);
  });

  it("show up to which one a project is charged", async () => {
    const key = { organizationId: organization_id, projectUid: hours(1)[0]?.project_uid as string };
    expect(await lastStorageHour(test.ledger, key)).toBeUndefined();
    await recordStorageCharges(test.ledger, hours(5));
    expect(await lastStorageHour(test.ledger, key)).toBe(hours(5)[4]?.hour_index);
    expect(await lastStorageHour(test.ledger, { ...key, projectUid: "other" })).toBeUndefined();
  });
});
