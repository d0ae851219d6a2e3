/** When an operator led and went on: what was to be seen then, and for long enough, was seen. */

/** A stretch of time in which one process led; without end while it does. */
interface Period {
  from: number;
  to: number;
}

/** Stretches that are kept: those of hours. */
const MAX_KEPT = 50;

export class LeadershipPeriods {
  readonly #noticeMs: number;
  readonly #periods: Period[] = [];
  #since: number | undefined;

  /** @param noticeMs in how many milliseconds a leader has noticed, and written down, what is reported to it */
  constructor(noticeMs: number) {
    this.#noticeMs = noticeMs;
  }

  /** Whether somebody leads, from now on. A leader that follows another starts a stretch of its own. */
  changed(leads: boolean, now: number): void {
    const from = this.#since;
    if (from !== undefined && now - from >= this.#noticeMs) {
      this.#periods.push({ from, to: now });
      if (this.#periods.length > MAX_KEPT) {
        this.#periods.shift();
      }
    }
    this.#since = leads ? now : undefined;
  }

  /** Whether what could be seen from one moment to another was noticed by a leader. */
  noticed(from: number, to: number): boolean {
    const latest = { from: this.#since ?? Number.POSITIVE_INFINITY, to: Number.POSITIVE_INFINITY };
    return [...this.#periods, latest].some(
      (led) => Math.min(led.to, to) - Math.max(led.from, from) >= this.#noticeMs,
    );
  }
}
