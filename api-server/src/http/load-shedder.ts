import { getHeapStatistics } from "node:v8";

/** How much of its memory the process uses, in parts of what it may. */
export interface MemoryUse {
  /** V8's heap. */
  heap: number;
  /** All of the process, of the container's limit; 0 where there is none. */
  process: number;
}

/** Above it new requests are refused: those under way need the rest. */
const FULL: MemoryUse = { heap: 0.92, process: 0.9 };
/** Milliseconds between reads of the memory in use. */
const SAMPLE_MS = 250;

/**
 * Says when the process has so little memory left that new requests are refused (503, with Retry-After) rather than all of them lost
 * with it. One sample may be garbage that is not collected yet: it takes two in a row.
 */
export class LoadShedder {
  readonly #read: () => MemoryUse;
  readonly #timer: NodeJS.Timeout;
  #full = 0;

  constructor(read: () => MemoryUse = memoryUse, sampleMs = SAMPLE_MS) {
    this.#read = read;
    this.#timer = setInterval(() => this.sample(), sampleMs);
    this.#timer.unref();
  }

  get isOverloaded(): boolean {
    return this.#full >= 2;
  }

  /** Looks at the memory now. */
  sample(): void {
    const { heap, process } = this.#read();
    this.#full = heap > FULL.heap || process > FULL.process ? this.#full + 1 : 0;
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

function memoryUse(): MemoryUse {
  const { used_heap_size: used, heap_size_limit: most } = getHeapStatistics();
  // 0, or more than any machine has, where the control group sets no limit.
  const limit = process.constrainedMemory();
  const isLimited = limit > 0 && limit < Number.MAX_SAFE_INTEGER;
  return { heap: used / most, process: isLimited ? process.memoryUsage.rss() / limit : 0 };
}
