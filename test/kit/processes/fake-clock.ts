import type { Clock, Timer } from "@slipway/process";

/** A clock that moves only when the test advances it. Wall and monotonic time move together unless `jumpWall` moves the wall clock. */
export class FakeClock implements Clock {
  #monotonic = 0;
  #wall: number;
  readonly #timers = new Set<{ at: number; callback: () => void }>();

  constructor(start = "2026-01-01T00:00:00Z") {
    this.#wall = Date.parse(start);
  }

  now(): Date {
    return new Date(this.#wall);
  }

  monotonic(): number {
    return this.#monotonic;
  }

  setTimeout(callback: () => void, ms: number): Timer {
    const timer = { at: this.#monotonic + ms, callback };
    this.#timers.add(timer);
    return { cancel: () => this.#timers.delete(timer) };
  }

  /** Timers that are due later. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Advances time, firing timers in order, and runs promises in between. */
  async advance(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    await runPromises();
    for (;;) {
      const due = [...this.#timers].filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!due) {
        break;
      }
      this.#timers.delete(due);
      this.#move(Math.max(due.at, this.#monotonic));
      due.callback();
      await runPromises();
    }
    this.#move(end);
    await runPromises();
  }

  /** Moves the wall clock alone, as a correction of the system's time does. */
  jumpWall(ms: number): void {
    this.#wall += ms;
  }

  #move(monotonic: number): void {
    this.#wall += monotonic - this.#monotonic;
    this.#monotonic = monotonic;
  }
}

/** Runs the promises that are due. */
async function runPromises(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}
