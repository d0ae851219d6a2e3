import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { ConcurrencyLimiter, type Release } from "@slipway/process";

/** A request that is counted, and what ends that. */
interface Counted {
  request: IncomingMessage;
  release: Release;
}

/**
 * Bounds the requests under way, of the process and of each address. What a request has taken is kept with its connection, whose end is
 * listened for once and not for each request: an answer behind another on one connection has no events of its own when the connection
 * breaks.
 */
export class RequestsUnderWay {
  readonly #limiter: ConcurrencyLimiter;
  readonly #byConnection = new WeakMap<Socket, Counted[]>();

  /** @param limits requests at most: of the process, and of one address */
  constructor(limits: { requests: number; requestsPerAddress: number }) {
    this.#limiter = new ConcurrencyLimiter({ total: limits.requests, perKey: limits.requestsPerAddress });
  }

  /** How many there are now. */
  get total(): number {
    return this.#limiter.inUse;
  }

  /**
   * Counts a request until {@link end}, or the end of its connection.
   * @returns false when there are too many: then it is not counted
   */
  tryBegin(request: IncomingMessage, address: string): boolean {
    const release = this.#limiter.tryAcquire(address);
    if (!release) {
      return false;
    }
    const { socket } = request;
    if (socket.destroyed) {
      // Nothing would end it: its connection has already broken.
      release();
    } else {
      this.#countedOf(socket).push({ request, release });
    }
    return true;
  }

  /** The whole answer has been written. A request that is not counted, or no longer, changes nothing. */
  end(request: IncomingMessage): void {
    const counted = this.#byConnection.get(request.socket) ?? [];
    const at = counted.findIndex((one) => one.request === request);
    if (at >= 0) {
      counted.splice(at, 1)[0]?.release();
    }
  }

  #countedOf(socket: Socket): Counted[] {
    const known = this.#byConnection.get(socket);
    if (known) {
      return known;
    }
    const counted: Counted[] = [];
    this.#byConnection.set(socket, counted);
    socket.once("close", () => {
      for (const { release } of counted.splice(0)) {
        release();
      }
    });
    return counted;
  }
}
