import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/**
 * Sees every piece of a connection before it is forwarded; `cut` drops it and breaks the connection.
 * @param connection its number, from 0
 */
export type TcpTap = (connection: number, from: "client" | "server", chunk: Buffer) => "pass" | "cut";

/** A TCP proxy on loopback before a real server, that can cut, refuse and swallow connections. */
export class TcpProxy {
  readonly #target: { host: string; port: number };
  readonly #tap: TcpTap;
  #connections = 0;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;
  #stalled = false;

  constructor(target: { host: string; port: number }, tap: TcpTap = () => "pass") {
    this.#target = target;
    this.#tap = tap;
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
    for (const socket of this.#sockets) {
      socket.resetAndDestroy();
    }
  }

  /** Breaks every connection and refuses new ones. */
  async down(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.cut();
    await new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()));
  }

  /** Keeps connections open, but forwards no byte, as a broken router does. */
  stall(stalled: boolean): void {
    this.#stalled = stalled;
    for (const socket of this.#sockets) {
      if (stalled) {
        socket.pause();
      } else {
        socket.resume();
      }
    }
  }

  #pipe(client: Socket): void {
    const upstream = connect(this.#target);
    const connection = this.#connections++;
    for (const [from, to, name] of [
      [client, upstream, "client"],
      [upstream, client, "server"],
    ] as const) {
      this.#sockets.add(from);
      from.on("data", (chunk) => {
        if (this.#tap(connection, name, chunk) === "pass") {
          to.write(chunk);
        } else {
          for (const socket of [from, to]) {
            socket.resetAndDestroy();
          }
        }
      });
      from.on("error", () => to.destroy());
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      if (this.#stalled) {
        from.pause();
      }
    }
  }
}
