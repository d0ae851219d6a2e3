/** Which answers of loads that overlap are shown: one that was requested before what is shown may be older than that. Pure. */
export class LoadOrder {
  #begun = 0;
  #shown = 0;

  /** Begins a load. @returns whether its answer is to be shown now, which it counts as from then on */
  begin(): () => boolean {
    this.#begun += 1;
    const own = this.#begun;
    return () => {
      const isNewest = own >= this.#shown;
      this.#shown = Math.max(own, this.#shown);
      return isNewest;
    };
  }
}
