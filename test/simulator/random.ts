/** Seeded chance: the same seed draws the same numbers, on every machine. */

/** A generator of its own (sfc32), so that drawing more in one place changes nothing in another. */
export class Chance {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  /** @param seed whole number @param name what it is for: each name has a stream of its own */
  constructor(seed: number, name: string) {
    let hash = 2166136261 ^ seed;
    for (let index = 0; index < name.length; index += 1) {
      hash = Math.imul(hash ^ name.charCodeAt(index), 16777619);
    }
    this.#a = hash | 0;
    this.#b = seed | 0;
    this.#c = Math.imul(seed, 0x9e3779b1) | 0;
    for (let round = 0; round < 16; round += 1) {
      this.next();
    }
  }

  /** In [0, 1). */
  next(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (this.#c << 21) | (this.#c >>> 11) | 0;
    this.#c = (this.#c + sum) | 0;
    return (sum >>> 0) / 4294967296;
  }

  /** Whether something happens that does so this often. */
  happens(probability: number): boolean {
    return probability > 0 && this.next() < probability;
  }

  /** In [from, to). */
  between(from: number, to: number): number {
    return from + this.next() * (to - from);
  }

  /** A whole number in [0, below). */
  below(below: number): number {
    return Math.floor(this.next() * below);
  }

  /** A time until something that comes once in `mean` on the average. */
  exponential(mean: number): number {
    return -Math.log(1 - this.next()) * mean;
  }

  /** One of several. */
  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  /** One of several by their weights. */
  weighted<T extends string>(weights: Readonly<Record<T, number>>): T {
    const entries = Object.entries(weights) as [T, number][];
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [item, weight] of entries) {
      left -= weight;
      if (left < 0) {
        return item;
      }
    }
    return (entries.at(-1) as [T, number])[0];
  }

  /** Letters and digits, as in the names of pods. */
  text(length: number): string {
    let text = "";
    for (let index = 0; index < length; index += 1) {
      text += "bcdfghjklmnpqrstvwxz2456789"[this.below(27)];
    }
    return text;
  }
}
