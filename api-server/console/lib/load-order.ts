/** Which answers of loads that overlap are shown: one that was requested before what is shown may be older than that. Pure. */
export class LoadOrder {
  #begun = 0;
  #shown = 0;

  /** Begins a load. */
  begin(): BegunLoad {
    this.#begun += 1;
    const own = this.#begun;
    const isNewest = () => own >= this.#shown;
    const show = () => {
      const isShown = isNewest();
      this.#shown = Math.max(own, this.#shown);
      return isShown;
    };
    return { isNewest, show };
  }
}

export interface BegunLoad {
  /** Whether nothing is shown that was requested later, so that its failure says something of what is. */
  isNewest: () => boolean;
  /** Whether its answer is to be shown now, which it counts as from then on. */
  show: () => boolean;
}
