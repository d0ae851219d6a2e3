import { expect, test } from "vitest";
import { faults, markdown, type Results } from "./report.ts";

const sound: Results = {
  commit: "0123abcd",
  rounds: [4_000, 1_000, 3_000, 2_000].map((ledgerGap) => ({
    fault: "the server is killed",
    ledgerGap,
    apiGap: 2_500,
  })),
  rows: [{ writer: "the ledger's own package", acknowledged: 100, lost: 0 }],
  secondPrimaries: 0,
  converted: { before: 7, after: 7 },
  backupBytes: 1,
};

test("has the least, the median and the most of each fault", () => {
  expect(faults(sound)).toEqual([]);
  expect(markdown(sound)).toContain("| the server is killed | 4 | 1.0 / 2.5 / 4.0 | 2.5 / 2.5 / 2.5 |");
  expect(markdown(sound)).not.toContain("Wrong");
});

test.for<[string, Partial<Results>, string]>([
  ["a lost row", { rows: [{ writer: "w", acknowledged: 9, lost: 1 }] }, "1 of 9 acknowledged rows are lost"],
  ["a writer that wrote nothing", { rows: [{ writer: "w", acknowledged: 0, lost: 0 }] }, "no row"],
  ["a second primary", { secondPrimaries: 1 }, "second primary"],
  ["a conversion that lost rows", { converted: { before: 7, after: 6 } }, "6 of 7 rows"],
  ["a conversion of nothing", { converted: { before: 0, after: 0 } }, "0 of 0 rows"],
  ["no fault at all", { rounds: [] }, "nothing befell"],
  ["a backup of a standby that is none", { backupBytes: 0 }, "no ledger"],
])("%s is wrong", ([, change, words]) => {
  const wrong = { ...sound, ...change };
  expect(faults(wrong).join()).toContain(words);
  expect(markdown(wrong)).toContain("Wrong:");
});
