/** What happens when: a queue of events that time jumps through. Nothing here sleeps. */

/** An event that may be cancelled. */
export interface Planned {
  cancel(): void;
}

interface Entry extends Planned {
  at: number;
  order: number;
  run: (() => void) | undefined;
}

/** Milliseconds since the epoch, the truth: no clock of a process or of a node need agree with it. */
export class Timeline {
  #now: number;
  #order = 0;
  readonly #heap: Entry[] = [];
  #touched = false;
  /** Events that have happened. */
  events = 0;

  constructor(start: number) {
    this.#now = start;
  }

  get now(): number {
    return this.#now;
  }

  /** Plans an event; those of one moment happen in the order in which they were planned. */
  at(time: number, run: () => void): Planned {
    const entry: Entry = {
      at: Math.max(time, this.#now),
      order: this.#order++,
      run,
      cancel: () => {
        entry.run = undefined;
      },
    };
    this.#push(entry);
    return entry;
  }

  /** Plans an event `ms` from now. */
  after(ms: number, run: () => void): Planned {
    return this.at(this.#now + ms, run);
  }

  /** To be called by what wakes asynchronous code: it runs to its next wait before time advances. */
  touch(): void {
    this.#touched = true;
  }

  /** Runs all events that are due up to `end`. */
  async runUntil(end: number, before?: () => boolean): Promise<void> {
    await this.#runPromises();
    for (;;) {
      const entry = this.#heap[0];
      if (!entry || entry.at > end || before?.() === false) {
        break;
      }
      this.#pop();
      const { run } = entry;
      if (!run) {
        continue;
      }
      this.#now = entry.at;
      this.events += 1;
      run();
      if (this.#touched) {
        await this.#runPromises();
      }
    }
    this.#now = Math.max(this.#now, end);
  }

  /** All that asynchronous code does without waiting for an event is done before the next immediate. */
  async #runPromises(): Promise<void> {
    this.#touched = false;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let index = heap.length;
    heap.push(entry);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent] as Entry;
      if (!isBefore(entry, above)) {
        break;
      }
      heap[index] = above;
      index = parent;
    }
    heap[index] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop() as Entry;
    if (heap.length === 0) {
      return;
    }
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      if (left >= heap.length) {
        break;
      }
      const right = left + 1;
      const least = right < heap.length && isBefore(heap[right] as Entry, heap[left] as Entry) ? right : left;
      if (!isBefore(heap[least] as Entry, last)) {
        break;
      }
      heap[index] = heap[least] as Entry;
      index = least;
    }
    heap[index] = last;
  }
}

/** The work queue of a controller of the model: a key is due once, at the earliest time that was requested. */
export class DelayQueue {
  readonly #timeline: Timeline;
  readonly #sync: (key: string) => void;
  readonly #due = new Map<string, { at: number; planned: Planned }>();

  /** @param sync reconciles one key; it may add the key again */
  constructor(timeline: Timeline, sync: (key: string) => void) {
    this.#timeline = timeline;
    this.#sync = sync;
  }

  /** Adds a key that is due in `ms`. */
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

function isBefore(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
