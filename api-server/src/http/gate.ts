import { failures } from "../errors/catalog.ts";

export interface GateOptions {
  /** How many are inside at once. */
  atOnce: number;
  /** How many may wait before it. */
  waiting: number;
  /** Milliseconds that one waits. */
  waitMs: number;
}

/** Gives the place in a gate back; calling it again does nothing. */
export type Leave = () => void;

/** Lets only so many in at once; the others wait in order, briefly. It bounds what costs a process much memory or many calls. */
export class Gate {
  readonly #options: GateOptions;
  readonly #queue: (() => void)[] = [];
  #inside = 0;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** How many are inside. */
  get inside(): number {
    return this.#inside;
  }

  /**
   * Who gets a place must give it back, whatever happens.
   * @throws Failure 503 when too many wait already, or none leaves in time
   */
  async enter(): Promise<Leave> {
    const { atOnce, waiting, waitMs } = this.#options;
    if (this.#inside >= atOnce) {
      if (this.#queue.length >= waiting) throw failures.serverBusy();
      await this.#turn(waitMs);
    } else {
      this.#inside += 1;
    }
    let left = false;
    return () => {
      if (left) return;
      left = true;
      // A place goes to the next without becoming free in between: nobody overtakes.
      const next = this.#queue.shift();
      if (next) next();
      else this.#inside -= 1;
    };
  }

  /** Runs the work inside. */
  async run<T>(work: () => T | Promise<T>): Promise<T> {
    const leave = await this.enter();
    try {
      return await work();
    } finally {
      leave();
    }
  }

  #turn(waitMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#queue.splice(this.#queue.indexOf(enter), 1);
        reject(failures.serverBusy());
      }, waitMs);
      this.#queue.push(enter);
    });
  }
}
