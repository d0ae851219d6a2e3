import type { WebSocket } from "ws";

/** Bytes that a message counts beside its own: what a connection keeps of each until it is written. */
const MESSAGE_COST = 1_024;

export interface OutboxOptions {
  socket: WebSocket;
  /** Bytes that the connection may have, each message counted with its cost, before the other side is to be read no more. */
  maxBuffered: number;
  /** Called for each message that the connection has taken. */
  onTaken: () => void;
}

/**
 * Messages on their way to one side, in order. The connection gets no more of them than the bound; those that come although the
 * other side is paused, since one read of it had them, wait here, where a message is a view of what was read and little else.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  /** Messages that the connection has not taken yet. */
  #unsent = 0;
  #waiting: Buffer[] = [];
  #next = 0;
  #onEmpty: (() => void) | undefined;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** Whether the other side is to be read no more. */
  get isFull(): boolean {
    return this.#isWaiting || this.#cost > this.#options.maxBuffered;
  }

  /** Whether the other side is to be read again. */
  get hasRoom(): boolean {
    return !this.#isWaiting && this.#cost <= this.#options.maxBuffered / 2;
  }

  get #isWaiting(): boolean {
    return this.#next < this.#waiting.length;
  }

  get #cost(): number {
    return this.#options.socket.bufferedAmount + this.#unsent * MESSAGE_COST;
  }

  send(message: Buffer): void {
    if (this.isFull) {
      this.#waiting.push(message);
    } else {
      this.#write(message);
    }
  }

  /** Calls back once, when the connection has taken all that was sent. */
  whenEmpty(then: () => void): void {
    this.#onEmpty = then;
    this.#checkEmpty();
  }

  /** Drops what the connection does not have yet. */
  clear(): void {
    this.#waiting = [];
    this.#next = 0;
  }

  #write(message: Buffer): void {
    this.#unsent += 1;
    this.#options.socket.send(message, { binary: true }, () => this.#taken());
  }

  #taken(): void {
    this.#unsent -= 1;
    while (this.#isWaiting && this.#cost <= this.#options.maxBuffered) {
      this.#write(this.#waiting[this.#next] as Buffer);
      this.#next += 1;
    }
    if (!this.#isWaiting) {
      this.clear();
    }
    this.#options.onTaken();
    this.#checkEmpty();
  }

  #checkEmpty(): void {
    if (this.#unsent === 0 && !this.#isWaiting) {
      const then = this.#onEmpty;
      this.#onEmpty = undefined;
      then?.();
    }
  }
}
