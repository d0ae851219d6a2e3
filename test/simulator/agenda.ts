/** The work queue of a controller of the model: a key is due once, at the earliest time that was asked for. */

import type { Planned, Timeline } from "./timeline.ts";

export class Agenda {
  readonly #timeline: Timeline;
  readonly #sync: (key: string) => void;
  readonly #due = new Map<string, { at: number; planned: Planned }>();

  /** @param sync brings one key to where it should be; it may ask for itself again */
  constructor(timeline: Timeline, sync: (key: string) => void) {
    this.#timeline = timeline;
    this.#sync = sync;
  }

  /** Asks for a key in so many milliseconds. */
  add(key: string, ms: number): void {
    const at = this.#timeline.now + Math.max(0, ms);
    const present = this.#due.get(key);
    if (present && present.at <= at) {
      return;
    }
    present?.planned.cancel();
    const planned = this.#timeline.at(at, () => {
      this.#due.delete(key);
      this.#sync(key);
    });
    this.#due.set(key, { at, planned });
  }
}
