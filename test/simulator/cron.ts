/** Schedules as the model reads them, apart from the operator's own reading: what both agree on is seen twice. */

const MINUTE = 60_000;

/** A five-field schedule in UTC of `*`, numbers, lists and steps. */
export class ModelSchedule {
  readonly text: string;
  readonly #minutes: readonly boolean[];
  readonly #hours: readonly boolean[];

  /** @throws RangeError for fields that the model does not need: days, months and weekdays are `*` */
  constructor(text: string) {
    const [minutes = "", hours = "", ...days] = text.split(" ");
    if (days.length !== 3 || days.some((field) => field !== "*")) {
      throw new RangeError("not a schedule of the model");
    }
    this.text = text;
    this.#minutes = field(minutes, 60);
    this.#hours = field(hours, 24);
  }

  /** Whether a minute is one of the schedule's. */
  includes(time: number): boolean {
    const minute = Math.floor(time / MINUTE);
    return this.#minutes[minute % 60] === true && this.#hours[Math.floor(minute / 60) % 24] === true;
  }

  /** The first occurrence after a moment. */
  next(after: number): number {
    let time = (Math.floor(after / MINUTE) + 1) * MINUTE;
    while (!this.includes(time)) {
      time += MINUTE;
    }
    return time;
  }

  /** The last occurrence at or before a moment. */
  previous(before: number): number {
    let time = Math.floor(before / MINUTE) * MINUTE;
    while (!this.includes(time)) {
      time -= MINUTE;
    }
    return time;
  }

  /** Occurrences in (after, until]. */
  between(after: number, until: number): number[] {
    const found: number[] = [];
    for (let time = this.next(after); time <= until; time = this.next(time)) {
      found.push(time);
    }
    return found;
  }
}

function field(text: string, size: number): boolean[] {
  const found = Array.from({ length: size }, () => false);
  for (const part of text.split(",")) {
    const [range = "", step] = part.split("/");
    const every = step === undefined ? 1 : Number(step);
    if (range === "*") {
      for (let value = 0; value < size; value += every) {
        found[value] = true;
      }
    } else {
      found[Number(range)] = true;
    }
  }
  return found;
}
