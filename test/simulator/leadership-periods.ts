/** Periods in which an operator led: what was reported then, for long enough, was observed. */

/** A period in which one process led; without end while it does. */
interface Period {
  from: number;
  to: number;
}

/** Periods that are kept: those of hours. */
const MAX_KEPT = 50;

export class LeadershipPeriods {
  readonly #observeMs: number;
  readonly #periods: Period[] = [];
  #since: number | undefined;

  /** @param observeMs in how many milliseconds a leader has observed, and recorded, what is reported to it */
  constructor(observeMs: number) {
    this.#observeMs = observeMs;
  }

  /** Whether somebody leads, from now on. A leader that follows another starts a period of its own. */
  changed(leads: boolean, now: number): void {
    const from = this.#since;
    if (from !== undefined && now - from >= this.#observeMs) {
      this.#periods.push({ from, to: now });
      if (this.#periods.length > MAX_KEPT) {
        this.#periods.shift();
      }
    }
    this.#since = leads ? now : undefined;
  }

  /** Whether what was reported from one moment to another was observed by a leader. */
  observed(from: number, to: number): boolean {
    const latest = { from: this.#since ?? Number.POSITIVE_INFINITY, to: Number.POSITIVE_INFINITY };
    return [...this.#periods, latest].some(
      (led) => Math.min(led.to, to) - Math.max(led.from, from) >= this.#observeMs,
    );
  }
}
