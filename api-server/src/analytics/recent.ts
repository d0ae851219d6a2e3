/** Answers that are given again for a short while, also while they are still being worked out. */
export class Recent<T> {
  readonly #entries = new Map<string, { since: number; answer: Promise<T> }>();
  readonly #forMs: number;
  readonly #most: number;
  readonly #now: () => number;

  /**
   * @param forMs how long an answer is given again, from when it was begun
   * @param most answers that are held
   * @param now milliseconds that never go back
   */
  constructor(forMs: number, most: number, now: () => number = () => performance.now()) {
    this.#forMs = forMs;
    this.#most = most;
    this.#now = now;
  }

  /** The answer to this very question, or a new one. A failure is not given again. */
  of(question: string, work: () => Promise<T>): Promise<T> {
    const now = this.#now();
    const known = this.#entries.get(question);
    if (known && now - known.since <= this.#forMs) {
      return known.answer;
    }
    const entry = { since: now, answer: work() };
    this.#entries.delete(question);
    this.#entries.set(question, entry);
    // The oldest come first.
    for (const [key, { since }] of this.#entries) {
      if (now - since <= this.#forMs && this.#entries.size <= this.#most) {
        break;
      }
      this.#entries.delete(key);
    }
    entry.answer.catch(() => {
      if (this.#entries.get(question) === entry) {
        this.#entries.delete(question);
      }
    });
    return entry.answer;
  }
}
