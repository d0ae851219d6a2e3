/** Milliseconds by which a clock that is only slewed may differ, and how much of the time between. */
const TOLERANCE_MS = 100;
const SLEW = 0.001;

/** The store's clock, compared with time that only ever grows: also one that is set back by less than passed meanwhile is found. */
export class StoreClock {
  #last: { now: number; asked: number; answered: number } | undefined;

  /**
   * Within how many milliseconds before the answer the clock was set back, where it was since the last answer.
   * @param now what the store answered
   * @param asked when it was queried, by the monotonic clock
   * @param answered when it had answered
   */
  setBackWithin(now: number, asked: number, answered: number): number | undefined {
    const last = this.#last;
    this.#last = { now, asked, answered };
    if (last === undefined) {
      return undefined;
    }
    // At least so much passed between the two moments at which the store read its clock.
    const passed = Math.max(0, asked - last.answered);
    const isSetBack = now < last.now + passed * (1 - SLEW) - TOLERANCE_MS;
    return isSetBack ? answered - last.asked : undefined;
  }
}
