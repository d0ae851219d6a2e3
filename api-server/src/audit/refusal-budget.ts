/** Rows of refusals that one organization gets: a burst, and a rate per minute. */
const BURST = 60;
const PER_MINUTE = 30;
/** Organizations that are remembered; a full budget need not be. */
const MOST = 10_000;

/** A budget of rows for refusals by organization: each has its own, and none uses another's. */
export class RefusalBudget {
  readonly #left = new Map<string, { rows: number; at: number }>();

  /**
   * Takes one row of an organization's budget.
   * @param now milliseconds
   * @returns whether there was one
   */
  take(organizationId: string, now: number): boolean {
    const known = this.#left.get(organizationId);
    const since = known ? Math.max(0, now - known.at) : 0;
    const rows = known ? Math.min(BURST, known.rows + (since * PER_MINUTE) / 60_000) : BURST;
    if (!known && this.#left.size >= MOST) {
      this.#forgetFull(now);
    }
    const taken = rows >= 1;
    this.#left.set(organizationId, { rows: taken ? rows - 1 : rows, at: now });
    return taken;
  }

  #forgetFull(now: number): void {
    for (const [organizationId, { rows, at }] of this.#left) {
      if (rows + ((now - at) * PER_MINUTE) / 60_000 >= BURST) {
        this.#left.delete(organizationId);
      }
    }
  }
}
