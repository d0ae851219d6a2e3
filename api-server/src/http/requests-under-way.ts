import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";

/** A request that is counted, and the address that it is counted for. */
interface Counted {
  request: IncomingMessage;
  address: string;
}

/**
 * Counts the requests under way, of the process and of each address. What a request is counted under is kept with its connection, whose
 * end is listened for once and not for each request: an answer behind another on one connection has no events of its own when the
 * connection breaks.
 */
export class RequestsUnderWay {
  readonly #limit: number;
  readonly #limitPerAddress: number;
  readonly #byAddress = new Map<string, number>();
  readonly #byConnection = new WeakMap<Socket, Counted[]>();
  #total = 0;

  /** @param limits requests at most: of the process, and of one address */
  constructor(limits: { requests: number; requestsPerAddress: number }) {
    this.#limit = limits.requests;
    this.#limitPerAddress = limits.requestsPerAddress;
  }

  /** How many there are now. */
  get total(): number {
    return this.#total;
  }

  /**
   * Counts a request until {@link end}, or the end of its connection.
   * @returns false when there are too many: then it is not counted
   */
  tryBegin(request: IncomingMessage, address: string): boolean {
    const ofAddress = this.#byAddress.get(address) ?? 0;
    if (this.#total >= this.#limit || ofAddress >= this.#limitPerAddress) {
      return false;
    }
    const { socket } = request;
    // Nothing would end it: its connection has already broken.
    if (socket.destroyed) {
      return true;
    }
    this.#total += 1;
    this.#byAddress.set(address, ofAddress + 1);
    this.#countedOf(socket).push({ request, address });
    return true;
  }

  /** The whole answer has been written. A request that is not counted, or no longer, changes nothing. */
  end(request: IncomingMessage): void {
    const counted = this.#byConnection.get(request.socket);
    const at = counted?.findIndex((one) => one.request === request) ?? -1;
    const [ended] = at < 0 ? [] : (counted?.splice(at, 1) ?? []);
    if (ended) {
      this.#release(ended.address);
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
      for (const { address } of counted.splice(0)) {
        this.#release(address);
      }
    });
    return counted;
  }

  #release(address: string): void {
    this.#total -= 1;
    const left = (this.#byAddress.get(address) ?? 0) - 1;
    if (left > 0) {
      this.#byAddress.set(address, left);
    } else {
      this.#byAddress.delete(address);
    }
  }
}
