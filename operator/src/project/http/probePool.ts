/** Runs what waits for the network apart from the controller's workers, so that nobody's silence holds one of them. */

export interface ProbePoolOptions {
  /** Jobs at once: 32 unless given. */
  concurrency?: number;
  /** Jobs at once of one group: 8 unless given. */
  perGroup?: number;
}

interface Job {
  group: string;
  run: () => Promise<void>;
}

/** A bounded number of jobs at once, in the order in which they came; no group takes the places of all. */
export class ProbePool {
  readonly #concurrency: number;
  readonly #perGroup: number;
  readonly #waiting: Job[] = [];
  /** Jobs under way, by group. */
  readonly #running = new Map<string, number>();
  #total = 0;

  constructor({ concurrency = 32, perGroup = 8 }: ProbePoolOptions = {}) {
    this.#concurrency = concurrency;
    this.#perGroup = perGroup;
  }

  /** Adds a job, which starts now or once there is a place. @param run never rejects */
  add(group: string, run: () => Promise<void>): void {
    this.#waiting.push({ group, run });
    this.#startNext();
  }

  #startNext(): void {
    while (this.#total < this.#concurrency) {
      const next = this.#waiting.findIndex(({ group }) => this.#of(group) < this.#perGroup);
      const [job] = next < 0 ? [] : this.#waiting.splice(next, 1);
      if (!job) {
        return;
      }
      this.#count(job.group, 1);
      void job.run().then(() => {
        this.#count(job.group, -1);
        this.#startNext();
      });
    }
  }

  #of(group: string): number {
    return this.#running.get(group) ?? 0;
  }

  #count(group: string, by: number): void {
    this.#total += by;
    const running = this.#of(group) + by;
    if (running === 0) {
      this.#running.delete(group);
    } else {
      this.#running.set(group, running);
    }
  }
}
