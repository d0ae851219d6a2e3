/** When the controller-manager gets to anything: soon as a rule, late at times, and not at all while it is down. */

import type { Chance } from "./random.ts";
import type { Timeline } from "./timeline.ts";

export interface ControllerManagerOptions {
  /** Milliseconds until it usually gets to a key. */
  usualMs: readonly [number, number];
  /** How often it takes much longer, and how long then. */
  late: number;
  lateMs: readonly [number, number];
  /** How often it crashes between two writes. */
  crashes: number;
}

export class ControllerManager {
  readonly #timeline: Timeline;
  readonly #chance: Chance;
  readonly #options: ControllerManagerOptions;
  #downUntil = 0;

  constructor(timeline: Timeline, chance: Chance, options: ControllerManagerOptions) {
    this.#timeline = timeline;
    this.#chance = chance;
    this.#options = options;
  }

  /** Milliseconds until it gets to a key. */
  delay(): number {
    const { usualMs, late, lateMs } = this.#options;
    return this.#chance.happens(late) ? this.#chance.between(...lateMs) : this.#chance.between(...usualMs);
  }

  /** Does nothing for a while. */
  stop(ms: number): void {
    this.#downUntil = Math.max(this.#downUntil, this.#timeline.now + ms);
  }

  /** Milliseconds until it works again; 0 while it does. */
  downFor(): number {
    const left = this.#downUntil - this.#timeline.now;
    return left > 0 ? left + this.#chance.between(0, 1_000) : 0;
  }

  /** Whether it crashes now. */
  crashes(): boolean {
    return this.#chance.happens(this.#options.crashes);
  }

  /** How long a restart takes. */
  restartMs(): number {
    return this.#chance.between(500, 15_000);
  }
}
