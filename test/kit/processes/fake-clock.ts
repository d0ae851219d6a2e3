import type { Clock, Timer } from "@slipway/process";

/** A clock that moves only when the test advances it. Wall and monotonic time move together unless `jumpWall` says otherwise. */
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

  /** Moves time on, firing timers in order, and lets promises settle in between. */
  async advance(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    await settle();
    for (;;) {
      const due = [...this.#timers].filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!due) {
        break;
      }
      this.#timers.delete(due);
      this.#move(Math.max(due.at, this.#monotonic));
      due.callback();
      await settle();
    }
    this.#move(end);
    await settle();
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

/** Lets promises that are due settle. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}
