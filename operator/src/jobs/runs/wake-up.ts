/** When a key has to be looked at again: the soonest of all that asks for it. */
export class WakeUp {
  #ms: number | undefined;

  /** In so many milliseconds. */
  in(ms: number): void {
    const wait = Math.max(ms, 1);
    this.#ms = this.#ms === undefined ? wait : Math.min(this.#ms, wait);
  }

  /** At a moment. */
  at(moment: Date, now: Date): void {
    this.in(moment.getTime() - now.getTime());
  }

  get ms(): number | undefined {
    return this.#ms;
  }
}
