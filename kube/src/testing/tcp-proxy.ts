import type { AddressInfo } from "node:net";
import { connect, createServer, type Server, type Socket } from "node:net";

/** A TCP proxy on loopback before a real server, that can cut, refuse and swallow connections. */
export class TcpProxy {
  readonly #target: { host: string; port: number };
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;
  #stalled = false;

  constructor(target: { host: string; port: number }) {
    this.#target = target;
  }

  get port(): number {
    return this.#port;
  }

  /** Listens, on the same port as before. */
  async up(): Promise<void> {
    const server = createServer((client) => this.#pipe(client));
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (server.address() as AddressInfo).port;
  }

  /** Breaks every connection; new ones are accepted. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Breaks every connection and refuses new ones. */
  async down(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.cut();
    await new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()));
  }

  /** Keeps connections open, but lets no byte through, as a broken router does. */
  stall(stalled: boolean): void {
    this.#stalled = stalled;
    for (const socket of this.#sockets) {
      if (stalled) socket.pause();
      else socket.resume();
    }
  }

  #pipe(client: Socket): void {
    const upstream = connect(this.#target);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      this.#sockets.add(from);
      from.on("data", (chunk) => void to.write(chunk));
      from.on("error", () => to.destroy());
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      if (this.#stalled) from.pause();
    }
  }
}
