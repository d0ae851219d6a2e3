import { isIP } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { type AddressOptions, addressOf } from "./address.ts";
import type { Credentials } from "./credentials.ts";
import { connectionFailure, DeliveryError, type OutgoingLine, type Receiver } from "./receiver.ts";
import { frames } from "./syslog.ts";

/**
 * A receiver of syslog over TLS. The protocol acknowledges nothing: what was written may be in a buffer of a receiver that is gone. So each batch
 * has a connection of its own, that is closed in order: a receiver has read all of it once it answers the end (RFC 5425, 4.4).
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
      const address = await addressOf(this.#host, this.#port, this.#options);
      signal.throwIfAborted();
      await deliver(this.#connect(address), frames(lines), signal);
      return { refused: 0 };
    } catch (error) {
      throw connectionFailure(error);
    }
  }

  close(): void {}

  #connect(host: string): TLSSocket {
    const name = this.#host;
    return connect({
      ...this.#credentials.tls,
      ...{ host, port: this.#port, minVersion: "TLSv1.2", allowHalfOpen: true },
      // The certificate has to name what the drain names, not the address that it has now.
      ...(isIP(name) === 0 ? { servername: name } : {}),
    });
  }
}

/** Writes all of it and the end, and resolves once the receiver has answered the end. */
function deliver(socket: TLSSocket, bytes: Buffer, signal: AbortSignal): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    let isWritten = false;
    const abort = () => socket.destroy(signal.reason as Error);
    signal.addEventListener("abort", abort, { once: true });
    socket.once("secureConnect", () => {
      socket.write(bytes, (error) => {
        if (!error) {
          isWritten = true;
          socket.end();
        }
      });
    });
    // Syslog has no answers: what comes is not read, and never kept.
    socket.on("data", () => {});
    socket.once("end", () => {
      if (!isWritten) {
        socket.destroy(new DeliveryError("ReceiverUnavailable", "the receiver ended the connection"));
      }
    });
    socket.once("error", reject);
    socket.once("close", (hadError) => {
      signal.removeEventListener("abort", abort);
      if (hadError || !isWritten) {
        reject(new DeliveryError("ReceiverUnavailable", "the receiver ended the connection"));
      } else {
        resolve();
      }
    });
  });
}
