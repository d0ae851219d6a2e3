import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * What becomes of a request: taken and answered; cut off before it is taken; refused with 503; taken and cut off before the answer;
 * taken, and the answer never comes.
 */
export type Mood = "well" | "away" | "busy" | "silent" | "hanging";

/** How often the sink has taken a record. */
export interface Received {
  /** In all requests that it took. */
  taken: number;
  /** The same, but each batch once: by its deduplication token, or by its bytes where there is none. */
  counted: number;
}

/**
 * The store in place of ClickHouse, or the receiver of another collector's OTLP/HTTP. A record is known by the path of its request,
 * `/orders/<uuid>/items/<number>`, which every collector sends on in its own format.
 */
export class CollectorSink {
  readonly #server: Server;
  readonly #received = new Map<number, Received>();
  readonly #batches = new Map<string, string>();
  readonly #hanging = new Set<ServerResponse>();
  #mood: Mood = "well";
  /** Batches that came again under the same token with other content. */
  changed = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<CollectorSink> {
    const server = createServer();
    const sink = new CollectorSink(server);
    server.on("request", (request, response) => sink.#serve(request, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return sink;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  set mood(mood: Mood) {
    this.#mood = mood;
    for (const response of this.#hanging) {
      response.destroy();
    }
    this.#hanging.clear();
  }

  /** How many different records it has. */
  get size(): number {
    return this.#received.size;
  }

  of(number: number): Received {
    return this.#received.get(number) ?? { taken: 0, counted: 0 };
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("error", () => {});
    request.on("end", () => {
      const mood = this.#mood;
      if (mood === "away") {
        return void request.socket.destroy();
      }
      if (mood === "busy") {
        return void response.writeHead(503).end();
      }
      this.#take(request, Buffer.concat(parts));
      if (mood === "silent") {
        request.socket.destroy();
      } else if (mood === "hanging") {
        this.#hanging.add(response);
      } else {
        // An answer of OTLP/HTTP, which ClickHouse's client ignores.
        response.writeHead(200, { "content-type": "application/json" }).end("{}");
      }
    });
  }

  #take(request: IncomingMessage, body: Buffer): void {
    const numbers = Array.from(body.toString("utf8").matchAll(/\/items\/(\d+)/g), ([, digits]) =>
      Number(digits),
    );
    if (numbers.length === 0) {
      return;
    }
    const content = createHash("sha256").update(body).digest("hex");
    const token = new URL(request.url ?? "/", "http://sink").searchParams.get("insert_deduplication_token");
    const id = token ?? content;
    const before = this.#batches.get(id);
    this.#batches.set(id, before ?? content);
    this.changed += before !== undefined && before !== content ? 1 : 0;
    for (const number of numbers) {
      const { taken, counted } = this.of(number);
      this.#received.set(number, { taken: taken + 1, counted: counted + (before === undefined ? 1 : 0) });
    }
  }
}
