import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseSchedule } from "./schedule.ts";

const MINUTE = 60_000;

/** Written independently of the code under test: matches one field of one moment. */
function fieldMatches(field: string, value: number, first: number, last: number): boolean {
  return field.split(",").some((item) => {
    const [range = "", step = "1"] = item.split("/");
    const [low = "", high] = range.split("-");
    const from = low === "*" ? first : Number(low);
    const open = item.includes("/") ? last : from;
    const to = low === "*" ? last : high === undefined ? open : Number(high);
    return value >= from && value <= to && (value - from) % Number(step) === 0;
  });
}

function matches(cron: string, at: Date): boolean {
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = cron.split(" ");
  const star = (field: string) => field.split(",").some((item) => item === "*" || item === "*/1");
  const ofMonth = fieldMatches(day, at.getUTCDate(), 1, 31);
  const ofWeek = fieldMatches(weekday, at.getUTCDay(), 0, 6);
  return (
    fieldMatches(minute, at.getUTCMinutes(), 0, 59) &&
    fieldMatches(hour, at.getUTCHours(), 0, 23) &&
    fieldMatches(month, at.getUTCMonth() + 1, 1, 12) &&
    (star(day) || star(weekday) ? ofMonth && ofWeek : ofMonth || ofWeek)
  );
}

const field = (first: number, last: number) => {
  const value = fc.integer({ min: first, max: last });
  const range = fc.tuple(value, value).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
  const whole = fc.constantFrom("*", "*", `${first}-${last}`);
  const base = fc.oneof(whole, value.map(String), range);
  const item = fc
    .tuple(base, fc.option(fc.integer({ min: 1, max: 20 })))
    .map(([text, step]) => (step === null ? text : `${text}/${step}`));
  return fc.array(item, { minLength: 1, maxLength: 3 }).map((items) => items.join(","));
};
const cron = fc
  .tuple(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6))
  .map((fields) => fields.join(" "));

describe("a schedule", () => {
  test("is due when a minute-by-minute reading of its fields matches", () => {
    const start = fc.date({ min: new Date("2023-01-01"), max: new Date("2029-01-01"), noInvalidDate: true });
    fc.assert(
      fc.property(cron, start, (text, from) => {
        const to = new Date(from.getTime() + 36 * 60 * MINUTE);
        const expected: string[] = [];
        const first = Math.floor(from.getTime() / MINUTE) + 1;
        for (let minute = first; minute * MINUTE <= to.getTime(); minute += 1) {
          const at = new Date(minute * MINUTE);
          if (matches(text, at)) {
            expected.push(at.toISOString());
          }
        }
        const due = parseSchedule(text).between(from, to, 10_000);
        expect(due.map((at) => at.toISOString())).toEqual(expected);
      }),
      { numRuns: 300 },
    );
  });

  test("is due when robfig/cron, which Kubernetes uses, matches", () => {
    const file = new URL("testdata/robfig.json", import.meta.url);
    const rows = JSON.parse(readFileSync(file, "utf8")) as { cron: string; after: string; next: string[] }[];
    expect(rows.length).toBe(300);
    for (const { cron: text, after, next } of rows) {
      const schedule = parseSchedule(text);
      const due: string[] = [];
      let at: Date | undefined = new Date(after);
      while (at && due.length < next.length) {
        at = schedule.next(at);
        if (at) {
          due.push(at.toISOString().replace(".000", ""));
        }
      }
      expect([text, due]).toEqual([text, next]);
      if (next.length === 0) {
        expect([text, schedule.next(new Date(after))]).toEqual([text, undefined]);
      }
    }
  });

  test.each(["0 0 31 2 *", "0 0 30 2 *", "*/5 * 31 4,6,9,11 *"])("%s is never due", (text) => {
    const schedule = parseSchedule(text);
    expect(schedule.next(new Date("2026-01-01"))).toBeUndefined();
    expect(schedule.between(new Date("2020-01-01"), new Date("2040-01-01"), 5)).toEqual([]);
    expect(schedule.has(new Date("2026-02-28T00:00:00Z"))).toBe(false);
  });

  test("on 29 February is found across a century without a leap year", () => {
    const next = parseSchedule("0 0 29 2 *").next(new Date("2096-03-01"));
    expect(next?.toISOString()).toBe("2104-02-29T00:00:00.000Z");
  });

  test("is bounded in what it lists", () => {
    const due = parseSchedule("* * * * *").between(new Date("2020-01-01"), new Date("2030-01-01"), 3);
    expect(due.map((at) => at.toISOString())).toEqual([
      "2020-01-01T00:01:00.000Z",
      "2020-01-01T00:02:00.000Z",
      "2020-01-01T00:03:00.000Z",
    ]);
  });

  test("is cheap: the next moments of 1,000 schedules take no more than seconds of processor", () => {
    const began = process.cpuUsage();
    for (let index = 0; index < 1_000; index += 1) {
      parseSchedule(`${index % 60} ${index % 24} * * 1-5`).next(new Date("2026-01-01"));
    }
    const { user, system } = process.cpuUsage(began);
    // Some 0.3 s on an idle machine; a search minute by minute would take minutes.
    expect((user + system) / 1e6).toBeLessThan(5);
  });

  test.each(["* * * *", "* * * * * *", "@daily", "60 * * * *", "0 0 * FOO *"])("%s is refused", (text) => {
    expect(() => parseSchedule(text)).toThrow();
  });
});
