/** Milliseconds by which a clock that is only slewed may differ, and how much of the time between. */
const TOLERANCE_MS = 100;
const SLEW = 0.001;

/** The store's clock, compared with time that only ever grows: also one that is set back by less than passed meanwhile is found. */
export class StoreClock {
  #last: { now: number; askedBy: number } | undefined;

  /**
   * Whether the clock was set back since the last answer.
   * @param now what the store answered
   * @param asked when it was queried, by the monotonic clock
   * @param answered when it had answered
   */
  isSetBack(now: number, asked: number, answered: number): boolean {
    const last = this.#last;
    this.#last = { now, askedBy: answered };
    if (last === undefined) {
      return false;
    }
    // At least so much passed between the two moments at which the store read its clock.
    const passed = Math.max(0, asked - last.askedBy);
    return now < last.now + passed * (1 - SLEW) - TOLERANCE_MS;
  }
}
