/** When projects were last requested: observed since this process leads, and unknown before. Pure but for what it remembers. */

import type { Reading, Round } from "../applications/requests/request-rates.ts";

/** After so long without a complete round, nothing is known of the time between. */
const GAP_MS = 60_000;

export class LastRequests {
  /** Monotonic times. Since when everything was counted without a gap; undefined before. */
  #since: number | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  /** Of projects that had a request since then. */
  readonly #last = new Map<string, number>();
  #known = new Map<string, Reading["counts"]>();

  /** Seconds since the last request, at the least; undefined while it is unknown. @param key `<organization>/<project>` */
  idleSeconds(key: string, now: number): number | undefined {
    if (this.#since === undefined || now - this.#readAt > GAP_MS) {
      return undefined;
    }
    return Math.floor((this.#readAt - (this.#last.get(key) ?? this.#since)) / 1_000);
  }

  /** A round in which requests may be missing begins all times again, and so does one whose processes are not those of the last. */
  add({ at, complete, readings }: Round): void {
    const known = new Map(readings.map(({ process, counts }) => [process, counts]));
    const before = this.#known;
    this.#known = known;
    if (!complete || !readings.every((reading) => reading.complete)) {
      this.#since = undefined;
      return;
    }
    const isGap = this.#since === undefined || at - this.#readAt > GAP_MS;
    this.#readAt = at;
    // One that has ended may have counted requests that were never read.
    if (isGap || [...before.keys()].some((process) => !known.has(process))) {
      this.#since = at;
      this.#last.clear();
    }
    for (const [process, counts] of known) {
      for (const [key, count] of counts) {
        if (count !== (before.get(process)?.get(key) ?? 0)) {
          this.#last.set(key, at);
        }
      }
    }
  }
}
