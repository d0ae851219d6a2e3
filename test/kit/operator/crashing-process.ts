/** Processes that crash, for tests: each of them ends right after a write that it was the first to make. */

import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { Agent, request } from "node:https";
import type { AddressInfo } from "node:net";

/** What is known of a write: the same when it is made again. */
export type WriteKey = string;

/**
 * One process, as the apiserver and the ledger see its requests. Writes that earlier ones have made pass; after the first that none has
 * made, it has ended: the write was carried out, its answer is lost, and nothing else of it arrives.
 */
export class CrashingProcess {
  readonly #known: Set<WriteKey>;
  readonly #server: Server;
  readonly #agent = new Agent({ rejectUnauthorized: false });
  readonly #reads = new Set<ClientRequest>();
  #hasEnded = false;
  #resolveEnded: () => void = () => undefined;
  /** Resolves when it ends. */
  readonly ended: Promise<void>;

  private constructor(target: URL, known: Set<WriteKey>) {
    this.#known = known;
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    this.#server = createServer((incoming, answer) => void this.#pass(target, incoming, answer));
  }

  /** @param known writes that some process has made, to which those of this one are added */
  static async start(apiserver: string, known: Set<WriteKey>): Promise<CrashingProcess> {
    const crashing = new CrashingProcess(new URL(apiserver), known);
    await new Promise<void>((resolve) => crashing.#server.listen(0, "127.0.0.1", resolve));
    return crashing;
  }

  /** Address of the apiserver for this process alone. */
  get server(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** A write that goes another way than to the apiserver. @throws Error when the process has ended, before or after it */
  async write<T>(key: WriteKey, carryOut: () => Promise<T>): Promise<T> {
    if (this.#hasEnded) {
      throw new Error("the process has ended");
    }
    const done = await carryOut();
    if (this.#isLast(key) || this.#hasEnded) {
      throw new Error("killed");
    }
    return done;
  }

  /** Ends it, unless it has ended. */
  kill(): void {
    if (this.#hasEnded) {
      return;
    }
    this.#hasEnded = true;
    this.#server.close();
    this.#server.closeAllConnections();
    // What it has sent off arrives all the same.
    for (const read of this.#reads) {
      read.destroy();
    }
    this.#resolveEnded();
  }

  /** Two may be in progress concurrently: neither is answered then. */
  #isLast(key: WriteKey): boolean {
    if (this.#known.has(key)) {
      return false;
    }
    this.#known.add(key);
    this.kill();
    return true;
  }

  async #pass(target: URL, incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
    const { method = "GET", url = "/", headers } = incoming;
    const body = await bodyOf(incoming);
    if (this.#hasEnded) {
      return;
    }
    const { hostname, port } = target;
    const options = { hostname, port, method, path: url, headers: { ...headers, host: target.host } };
    const forwarded = request({ ...options, agent: this.#agent });
    if (method === "GET") {
      this.#reads.add(forwarded);
      forwarded.on("close", () => this.#reads.delete(forwarded));
    }
    forwarded.on("error", () => answer.destroy());
    forwarded.on("response", (response) => {
      response.on("error", () => answer.destroy());
      const key = (response.statusCode ?? 500) < 300 ? writeKey(method, url, body) : undefined;
      if (key === undefined) {
        answer.writeHead(response.statusCode ?? 500, response.headers);
        answer.flushHeaders();
        response.pipe(answer);
        return;
      }
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => {
        if (this.#isLast(key) || this.#hasEnded) {
          return;
        }
        answer.writeHead(response.statusCode ?? 500, response.headers).end(Buffer.concat(parts));
      });
    });
    forwarded.end(body);
  }
}

async function bodyOf(incoming: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  try {
    for await (const part of incoming) {
      parts.push(part as Buffer);
    }
  } catch {
    // The process has ended in the middle.
  }
  return Buffer.concat(parts);
}

interface Written {
  metadata?: { name?: string; annotations?: object; finalizers?: object };
  spec?: { sourceRevision?: object };
  status?: object;
}

/** Identifies a write by its content, not by its time; undefined for reads and Events, which do not count. Pure. */
export function writeKey(method: string, url: string, body: Buffer): WriteKey | undefined {
  const path = url.replace(/\?.*$/, "");
  if (method === "GET" || path.includes("/events")) {
    return undefined;
  }
  if (method === "DELETE") {
    return `DELETE ${path}`;
  }
  const { metadata, spec, status }: Written = JSON.parse(body.toString("utf8") || "{}") as Written;
  if (method === "POST") {
    return `POST ${path}/${metadata?.name ?? ""}`;
  }
  const content = JSON.stringify([status, metadata?.annotations, metadata?.finalizers, spec?.sourceRevision]);
  return `${method} ${path} ${content.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "…")}`;
}
