/** Text from several writers to one reader; writers wait while the reader is slow. */
export class TextQueue {
  readonly #maxBytes: number;
  #texts: string[] = [];
  #bytes = 0;
  #ended = false;
  #changed = Promise.withResolvers<void>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Resolves once there is space for more: false when the queue has ended. */
  async put(text: string): Promise<boolean> {
    if (this.#ended) {
      return false;
    }
    this.#texts.push(text);
    this.#bytes += text.length;
    this.#notify();
    while (!this.#ended && this.#bytes > this.#maxBytes) {
      await this.#changed.promise;
    }
    return !this.#ended;
  }

  /** All text in the queue, never empty; undefined once the queue has ended and is empty. */
  async take(): Promise<string | undefined> {
    while (this.#texts.length === 0) {
      if (this.#ended) {
        return undefined;
      }
      await this.#changed.promise;
    }
    const text = this.#texts.join("");
    this.#texts = [];
    this.#bytes = 0;
    this.#notify();
    return text;
  }

  /** No text is accepted after this. */
  end(): void {
    this.#ended = true;
    this.#notify();
  }

  #notify(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers<void>();
    resolve();
  }
}
