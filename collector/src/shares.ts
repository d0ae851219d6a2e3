/** Which organizations the bytes that wait on the disk are of, and how many one may have there. */

/**
 * Whether an organization may put more into the buffer: it may have a third of what is still left. One that writes without end
 * has a quarter of the buffer then, of several each has less, and however many there are some is left for the next one.
 * @param unsent bytes of its that wait @param remaining bytes that may still be written
 */
export function isWithinShare(unsent: number, remaining: number): boolean {
  return unsent * 3 < remaining;
}

/** The first item of the owner that has the most of them; undefined of none. */
export function firstOfMost<Item>(items: readonly Item[], ownerOf: (item: Item) => string): Item | undefined {
  const groups = Map.groupBy(items, ownerOf);
  const [first] = [...groups.values()].sort((a, b) => b.length - a.length);
  return first?.[0];
}

/** Bytes of batches by organization. What an earlier process wrote is of no organization: it only leaves less for all. */
export class UnsentBytes {
  readonly #batches = new Map<number, ReadonlyMap<string, number>>();
  readonly #bytes = new Map<string, number>();

  /** @param weights bytes of each organization's events before they were compressed */
  add(sequence: number, bytes: number, weights: ReadonlyMap<string, number>): void {
    const total = weights.values().reduce((sum, weight) => sum + weight, 0);
    const parts = new Map(
      weights
        .entries()
        .map(([organization, weight]): [string, number] => [
          organization,
          Math.ceil((bytes * weight) / total),
        ]),
    );
    this.#batches.set(sequence, parts);
    for (const [organization, part] of parts) {
      this.#bytes.set(organization, this.of(organization) + part);
    }
  }

  /** A batch waits no more. */
  remove(sequence: number): void {
    for (const [organization, part] of this.#batches.get(sequence) ?? []) {
      const left = this.of(organization) - part;
      if (left > 0) {
        this.#bytes.set(organization, left);
      } else {
        this.#bytes.delete(organization);
      }
    }
    this.#batches.delete(sequence);
  }

  of(organization: string): number {
    return this.#bytes.get(organization) ?? 0;
  }
}
