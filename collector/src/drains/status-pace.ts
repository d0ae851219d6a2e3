import type { Clock } from "@slipway/process";

/** Milliseconds between writes of one status: where a condition changed, and where only numbers did. */
const CHANGE_MS = 10_000;
const NUMBERS_MS = 60_000;

/** How often statuses are written. */
export class StatusPace {
  readonly #clock: Pick<Clock, "monotonic">;
  /** When each was written last, by uid, the oldest first. */
  readonly #written = new Map<string, number>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Whether a status may be written now, which counts as written then. */
  take(uid: string, isChange: boolean): boolean {
    const now = this.#clock.monotonic();
    const last = this.#written.get(uid);
    if (last !== undefined && now - last < (isChange ? CHANGE_MS : NUMBERS_MS)) {
      return false;
    }
    this.#written.delete(uid);
    this.#written.set(uid, now);
    for (const [one, at] of this.#written) {
      if (now - at < NUMBERS_MS) {
        break;
      }
      this.#written.delete(one);
    }
    return true;
  }
}
