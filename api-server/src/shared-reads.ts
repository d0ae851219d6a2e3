/**
 * Reads that are shared by callers who want the same, so that many concurrent calls cost two reads. Each caller gets a read that began after it
 * called, and so sees what was written before.
 */
export class SharedReads<Value> {
  readonly #running = new Map<string, Promise<Value>>();
  readonly #next = new Map<string, Promise<Value>>();

  /** The value of `read` for the key, or of an equal call. @throws what that read throws */
  read(key: string, read: () => Promise<Value>): Promise<Value> {
    const running = this.#running.get(key);
    if (running === undefined) {
      return this.#begin(key, read);
    }
    const waiting = this.#next.get(key);
    if (waiting !== undefined) {
      return waiting;
    }
    const begin = () => {
      this.#next.delete(key);
      return this.#begin(key, read);
    };
    const next = running.then(begin, begin);
    this.#next.set(key, next);
    return next;
  }

  #begin(key: string, read: () => Promise<Value>): Promise<Value> {
    const running = read().finally(() => {
      if (this.#running.get(key) === running) {
        this.#running.delete(key);
      }
    });
    this.#running.set(key, running);
    return running;
  }
}
