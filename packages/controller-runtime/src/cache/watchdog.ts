import type { Clock, Timer } from "@slipway/process";

/** Aborts a stream on which nothing came for a while. */
export class Watchdog {
  barked = false;
  readonly #clock: Clock;
  readonly #idleMs: number;
  readonly #bark: () => void;
  #timer: Timer | undefined;

  constructor(clock: Clock, idleMs: number, bark: () => void) {
    this.#clock = clock;
    this.#idleMs = idleMs;
    this.#bark = () => {
      this.barked = true;
      bark();
    };
    this.feed();
  }

  feed(): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimeout(this.#bark, this.#idleMs);
  }

  stop(): void {
    this.#timer?.cancel();
  }
}

export async function* fed(stream: AsyncIterable<Buffer>, watchdog: Watchdog): AsyncGenerator<Buffer> {
  for await (const chunk of stream) {
    watchdog.feed();
    yield chunk;
  }
}
