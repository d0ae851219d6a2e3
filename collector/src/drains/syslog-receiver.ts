import { isIP } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { type AddressOptions, receiverAddress } from "./address.ts";
import { connectionFailure } from "./connection-failure.ts";
import type { Credentials } from "./credentials.ts";
import { DeliveryError, type OutgoingLine, type Receiver } from "./receiver.ts";
import { frames } from "./syslog.ts";

/** Milliseconds between a batch and the end of its connection: least and most. */
const PAUSE_MS = [50, 1_000] as const;

/**
 * A receiver of syslog over TLS. The protocol acknowledges nothing: what was written may be in a buffer of a receiver that is gone. So each batch
 * has a connection of its own, that is closed in order: a receiver that answers the end has read what was before it (RFC 5425, 4.4). One that ends
 * the connection at the same time, without having read it, does not differ from that.
 */
export class SyslogReceiver implements Receiver {
  readonly #host: string;
  readonly #port: number;
  readonly #credentials: Credentials;
  readonly #options: AddressOptions;

  constructor(
    { host, port }: { host: string; port: number },
    credentials: Credentials,
    options: AddressOptions,
  ) {
    this.#host = host;
    this.#port = port;
    this.#credentials = credentials;
    this.#options = options;
  }

  async send(lines: readonly OutgoingLine[], signal: AbortSignal): Promise<{ refused: number }> {
    try {
      signal.throwIfAborted();
      await deliver(this.#connect(), frames(lines), signal);
      return { refused: 0 };
    } catch (error) {
      throw connectionFailure(error);
    }
  }

  close(): void {}

  #connect(): TLSSocket {
    const name = this.#host;
    return connect({
      ...this.#credentials.tls,
      ...receiverAddress(name, this.#port, this.#options),
      ...{ minVersion: "TLSv1.2", allowHalfOpen: true, autoSelectFamily: true },
      // The certificate has to name what the drain names, not the address that it has now.
      ...(isIP(name) === 0 ? { servername: name } : {}),
    });
  }
}

/**
 * Writes all of it and, a moment later, the end; resolves once the receiver has answered the end. A receiver that ends the connection before has
 * not read it: what it sent on its way here is waited for as long as connecting took.
 */
function deliver(socket: TLSSocket, bytes: Buffer, signal: AbortSignal): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    const began = performance.now();
    let isEnding = false;
    let pause: NodeJS.Timeout | undefined;
    const abort = () => socket.destroy(signal.reason as Error);
    signal.addEventListener("abort", abort, { once: true });
    socket.once("secureConnect", () => {
      const tookMs = performance.now() - began;
      socket.write(bytes, (error) => {
        if (!error) {
          pause = setTimeout(end, Math.min(Math.max(tookMs, PAUSE_MS[0]), PAUSE_MS[1]));
        }
      });
    });
    // In a turn of its own: what arrived during a stall of this process is read first.
    const end = () =>
      setImmediate(() => {
        isEnding = !socket.readableEnded && !socket.destroyed;
        socket.end();
      });
    // Syslog has no answers: what comes is not read, and never kept.
    socket.on("data", () => {});
    socket.once("end", () => {
      if (!isEnding || !socket.writableFinished) {
        socket.destroy(hungUp());
      }
    });
    socket.once("error", reject);
    socket.once("close", (hadError) => {
      clearTimeout(pause);
      signal.removeEventListener("abort", abort);
      if (hadError || !isEnding) {
        reject(hungUp());
      } else {
        resolve();
      }
    });
  });
}

const hungUp = () => new DeliveryError("ReceiverUnavailable", "the receiver ended the connection");
