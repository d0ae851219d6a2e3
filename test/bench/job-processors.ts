import { cpuSeconds } from "./load.ts";

/** Processor seconds by process. */
export type Processors = Record<string, number>;

/** How often it is sampled, in milliseconds. */
const EVERY_MS = 250;

/** Records from now on how much processor time some processes use, so that the cost of a part can be computed afterwards. */
export class ProcessorLog {
  readonly #pids: Record<string, number>;
  readonly #samples: { at: number; used: Processors }[] = [];
  readonly #timer: NodeJS.Timeout;

  /** @param pids of processes that live on, by what they are called */
  constructor(pids: Record<string, number>) {
    this.#pids = pids;
    this.#sample();
    this.#timer = setInterval(() => this.#sample(), EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** What each took from the beginning until a moment, in milliseconds since the epoch. */
  until(moment: number): Processors {
    const first = this.#samples[0];
    const last = this.#samples.findLast(({ at }) => at <= moment) ?? first;
    return Object.fromEntries(
      Object.keys(this.#pids).map((name) => [name, (last?.used[name] ?? 0) - (first?.used[name] ?? 0)]),
    );
  }

  #sample(): void {
    const used = Object.entries(this.#pids).map(([name, pid]) => [name, cpuSeconds(pid)] as const);
    this.#samples.push({ at: Date.now(), used: Object.fromEntries(used) });
  }
}
