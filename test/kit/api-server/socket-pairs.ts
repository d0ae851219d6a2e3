import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { EXEC_SOCKET_OPTIONS } from "@slipway/controller-runtime";
import { WebSocket, WebSocketServer } from "ws";

/** WebSockets between this process and itself, for tests of what is between two of them. */
export class SocketPairs {
  readonly #servers: WebSocketServer[] = [];

  /** Both ends of a connection: the server's, and the client's. */
  async open(): Promise<[server: WebSocket, client: WebSocket]> {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1", ...EXEC_SOCKET_OPTIONS });
    this.#servers.push(server);
    await once(server, "listening");
    const client = new WebSocket(
      `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
      EXEC_SOCKET_OPTIONS,
    );
    client.on("error", () => undefined);
    const [[far]] = await Promise.all([once(server, "connection"), once(client, "open")]);
    return [far as WebSocket, client];
  }

  /** Breaks all connections. */
  closeAll(): void {
    for (const server of this.#servers.splice(0)) {
      for (const socket of server.clients) {
        socket.terminate();
      }
      server.close();
    }
  }
}
