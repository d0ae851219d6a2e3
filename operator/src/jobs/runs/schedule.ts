/**
 * When a schedule of five fields is due, in UTC: as robfig/cron reads it, with which Kubernetes makes a CronJob's Jobs.
 * cron-parser reads the fields; the days are put together here, since it understands them otherwise. Where both day fields
 * are restricted, a day needs to match only one of them; and a field is restricted, even if it names every day, unless one
 * of its items is a star without a step, or with a step of 1.
 */

import { CronExpressionParser } from "cron-parser";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** 29 February may be eight years ahead; no schedule that is due at all is rarer. */
const MAX_DAYS = 9 * 366;
/** Schedules kept parsed. */
const MAX_KEPT = 10_000;

const FIELDS = ["minute", "hour", "dayOfMonth", "month", "dayOfWeek"] as const;
type Field = (typeof FIELDS)[number];
const LAST: Record<Field, number> = { minute: 59, hour: 23, dayOfMonth: 31, month: 12, dayOfWeek: 6 };
const MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/** A schedule. Moments are whole minutes. */
export interface Schedule {
  /** The first moment after `after`; undefined when the schedule is never due, as on 31 February. */
  next(after: Date): Date | undefined;
  /** The moments in `(from, to]`, oldest first, at most `limit`. */
  between(from: Date, to: Date, limit: number): Date[];
  /** Whether a moment is one of the schedule's. */
  has(at: Date): boolean;
}

const kept = new Map<string, Schedule>();

/**
 * Reads a schedule of the CRD's grammar.
 * @throws Error when it is none
 */
export function parseSchedule(cron: string): Schedule {
  const known = kept.get(cron);
  if (known) {
    return known;
  }
  if (kept.size >= MAX_KEPT) {
    kept.clear();
  }
  const parsed = new FieldSchedule(cron);
  kept.set(cron, parsed);
  return parsed;
}

class FieldSchedule implements Schedule {
  /** Minutes of a day at which it is due, ascending. */
  readonly #minutes: readonly number[];
  readonly #daysOfMonth: ReadonlySet<number>;
  readonly #months: ReadonlySet<number>;
  readonly #daysOfWeek: ReadonlySet<number>;
  readonly #eitherDay: boolean;
  #never = false;

  constructor(cron: string) {
    const raw = cron.split(" ");
    if (raw.length !== FIELDS.length) {
      throw new Error("not a schedule of five fields");
    }
    const values = (field: Field): number[] => valuesOf(field, raw[FIELDS.indexOf(field)] ?? "");
    const hours = values("hour");
    const minutes = values("minute");
    this.#minutes = hours.flatMap((hour) => minutes.map((minute) => hour * 60 + minute));
    this.#daysOfMonth = new Set(values("dayOfMonth"));
    this.#months = new Set(values("month"));
    this.#daysOfWeek = new Set(values("dayOfWeek"));
    this.#eitherDay = isRestricted(raw[2] ?? "") && isRestricted(raw[4] ?? "");
  }

  next(after: Date): Date | undefined {
    if (this.#never) {
      return undefined;
    }
    const from = Math.floor(after.getTime() / MINUTE_MS) * MINUTE_MS + MINUTE_MS;
    let day = Math.floor(from / DAY_MS) * DAY_MS;
    for (let days = 0; days < MAX_DAYS; days += 1, day += DAY_MS) {
      if (!this.#isDue(day)) {
        continue;
      }
      const minute = this.#minutes.find((candidate) => day + candidate * MINUTE_MS >= from);
      if (minute !== undefined) {
        return new Date(day + minute * MINUTE_MS);
      }
    }
    this.#never = true;
    return undefined;
  }

  between(from: Date, to: Date, limit: number): Date[] {
    const due: Date[] = [];
    let next = this.next(from);
    while (next && next <= to && due.length < limit) {
      due.push(next);
      next = this.next(next);
    }
    return due;
  }

  has(at: Date): boolean {
    return this.next(new Date(at.getTime() - 1))?.getTime() === at.getTime();
  }

  /** @param day the day's first millisecond */
  #isDue(day: number): boolean {
    const date = new Date(day);
    if (!this.#months.has(date.getUTCMonth() + 1)) {
      return false;
    }
    const ofMonth = this.#daysOfMonth.has(date.getUTCDate());
    const ofWeek = this.#daysOfWeek.has(date.getUTCDay());
    return this.#eitherDay ? ofMonth || ofWeek : ofMonth && ofWeek;
  }
}

function isRestricted(field: string): boolean {
  return !field.split(",").some((item) => item === "*" || item === "*/1");
}

/** The values of one field, ascending. */
function valuesOf(field: Field, raw: string): number[] {
  const items = raw.split(",").map((item) => numeric(field, item));
  const values = new Set<number>();
  for (const item of items) {
    const text = FIELDS.map((name) => (name === field ? item : "*")).join(" ");
    for (const value of CronExpressionParser.parse(text, { tz: "UTC" }).fields[field].values) {
      // cron-parser has Sunday twice, as 0 and as 7.
      values.add(field === "dayOfWeek" ? Number(value) % 7 : Number(value));
    }
  }
  return [...values].sort((a, b) => a - b);
}

/** An item without names, and with the end of a range that is left open: cron-parser would let a week end on a second Sunday. */
function numeric(field: Field, item: string): string {
  const names = field === "month" ? MONTHS : field === "dayOfWeek" ? DAYS : [];
  const first = field === "month" ? 1 : 0;
  const plain = item.toUpperCase().replace(/[A-Z]{3}/g, (name) => {
    const index = names.indexOf(name);
    if (index < 0) {
      throw new Error(`not a name of a day or month: ${name}`);
    }
    return String(index + first);
  });
  const last = LAST[field];
  return plain
    .replace(/^\*(?=\/)/, `${first === 1 || field === "dayOfMonth" ? 1 : 0}-${last}`)
    .replace(/^([0-9]+)(?=\/)/, `$1-${last}`);
}
