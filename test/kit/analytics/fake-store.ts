import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** Whether an insert is answered, taken in without an answer, or neither. */
export type Mood = "well" | "silent" | "away";

/**
 * The store, as far as inserts go there: it keeps what came under each deduplication token, once. Cut off after it has taken
 * a batch in, it is the store that died before it could say so.
 */
export class FakeStore {
  /** Rows by token, each as JSON. */
  readonly batches = new Map<string, string[]>();
  /** Tokens that came with other rows than the first time: never right. */
  readonly changed: string[] = [];
  /** Inserts that came, the repeated ones too. */
  inserts = 0;
  mood: () => Mood = () => "well";
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<FakeStore> {
    const server = createServer();
    const store = new FakeStore(server);
    server.on("request", (request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("error", () => {});
      request.on("end", () => {
        const url = new URL(request.url ?? "/", "http://store");
        const token = url.searchParams.get("insert_deduplication_token");
        // Everything else is about the schema.
        const mood = token === null ? "well" : store.mood();
        if (mood === "away") {
          return void request.socket.destroy();
        }
        if (token !== null) {
          store.#take(token, Buffer.concat(parts).toString("utf8"));
        }
        if (mood === "silent") {
          request.socket.destroy();
        } else {
          response.writeHead(200).end();
        }
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return store;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** All rows that were taken in. */
  get rows(): string[] {
    return [...this.batches.values()].flat();
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #take(token: string, text: string): void {
    this.inserts += 1;
    const rows = text.split("\n").slice(1);
    const before = this.batches.get(token);
    if (before && before.join("\n") !== rows.join("\n")) {
      this.changed.push(token);
    }
    this.batches.set(token, before ?? rows);
  }
}
