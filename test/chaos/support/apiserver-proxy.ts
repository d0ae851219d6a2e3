import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Agent, request as httpsRequest } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { kindOf } from "./writes.ts";

/** When the operator is killed: before its write reaches the apiserver, between the commit and the answer, after the answer. */
export const moments = ["before", "committed", "answered"] as const;
export type Moment = (typeof moments)[number];

/** A request of the operator that may write. */
export interface Write {
  method: string;
  /** Without the query. */
  path: string;
  body: unknown;
  /** What it does in the life of a run, or `other: …` outside of it; see `kindOf`. */
  kind: string;
}

export interface Fault {
  kind: string;
  moment: Moment;
  /** The write at which it was injected. */
  write?: Write;
}

export interface ProxyOptions {
  /** Where the apiserver is. */
  upstream: string;
  /** Folder with `admin.crt`, `admin.key` and `test-ca.crt`. */
  dir: string;
  /** Injects the fault. The request is neither sent nor answered before it has resolved. */
  killOperator: () => Promise<void>;
}

interface Answer {
  status: number;
  headers: IncomingMessage["headers"];
  body: Buffer;
}

/** A proxy between an operator and its apiserver: counts every write, and injects faults at the moments that a test chooses. */
export class ApiserverProxy {
  readonly #options: ProxyOptions;
  readonly #agent: Agent;
  readonly #server: Server;
  readonly #watches = new Set<{ answer: ServerResponse; upstream: IncomingMessage }>();
  /** The last answer to each list that begins a watch, by its path and query. */
  readonly #lists = new Map<string, Answer>();
  /** Lists that are answered once more with what they were. */
  #stale = new Map<string, Answer>();
  #watchesPaused = false;
  #watchesRefused = false;
  #refused = false;
  /** Faults that are still to be injected, each once: the first one of a write's kind. */
  faults: Fault[] = [];
  /** Those that were injected. */
  injected: Fault[] = [];
  /** Lists that were answered with the past. */
  repeated = 0;
  /** How often each kind of write was committed. */
  readonly committed = new Map<string, number>();
  #injecting = false;

  constructor(options: ProxyOptions) {
    this.#options = options;
    this.#agent = new Agent({
      keepAlive: true,
      ca: readFileSync(join(options.dir, "test-ca.crt")),
      cert: readFileSync(join(options.dir, "admin.crt")),
      key: readFileSync(join(options.dir, "admin.key")),
    });
    this.#server = createServer((request, answer) => {
      // To the operator every failure of the apiserver is a lost connection.
      this.#handle(request, answer).catch(() => answer.destroy());
    });
  }

  /** @returns the address that the operator uses */
  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.cutWatches();
    this.#agent.destroy();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  /** Ends every watch that is open. */
  cutWatches(): void {
    for (const { answer, upstream } of this.#watches) {
      answer.destroy();
      upstream.destroy();
    }
  }

  /** From now on watches are open and send nothing; none of their events is lost once they are resumed. */
  pauseWatches(paused: boolean): void {
    this.#watchesPaused = paused;
    for (const { upstream } of this.#watches) {
      if (paused) {
        upstream.pause();
      } else {
        upstream.resume();
      }
    }
  }

  /** From now on no watch can be opened. */
  refuseWatches(refused: boolean): void {
    this.#watchesRefused = refused;
  }

  /** From now on nothing gets through, as if the apiserver were unavailable. */
  refuse(refused: boolean): void {
    this.#refused = refused;
    if (refused) {
      this.cutWatches();
    }
  }

  /** Answers each list that begins a watch once more as it was answered last: an operator that starts now sees the past. */
  repeatLists(): void {
    this.#stale = new Map(this.#lists);
  }

  async #handle(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://proxy");
    const chunks: Buffer[] = [];
    for await (const chunk of request) {
      chunks.push(chunk as Buffer);
    }
    const body = Buffer.concat(chunks);
    if (this.#refused) {
      answer.destroy();
      return;
    }
    if (request.method === "GET") {
      if (url.searchParams.get("watch") === "true") {
        this.#watch(request, answer);
      } else {
        await this.#read(request, url, answer);
      }
      return;
    }
    const parsed: unknown = body.length === 0 ? undefined : JSON.parse(body.toString("utf8"));
    const method = request.method ?? "";
    const write: Write = {
      method,
      path: url.pathname,
      body: parsed,
      kind: kindOf(method, url.pathname, parsed, request.headers["content-type"]),
    };
    await this.#write(request, body, write, answer);
  }

  async #write(request: IncomingMessage, body: Buffer, write: Write, answer: ServerResponse): Promise<void> {
    const fault = this.#take(write);
    if (fault?.moment === "before") {
      await this.#inject(fault, write);
      answer.destroy();
      return;
    }
    let given: Answer;
    try {
      given = await this.#forward(request, body);
    } catch (error) {
      if (fault) {
        this.#putBack(fault);
      }
      throw error;
    }
    if (given.status >= 300) {
      // Nothing was committed: the fault waits for the next of this kind.
      if (fault) {
        this.#putBack(fault);
      }
    } else {
      this.committed.set(write.kind, (this.committed.get(write.kind) ?? 0) + 1);
      if (fault?.moment === "committed") {
        await this.#inject(fault, write);
        answer.destroy();
        return;
      }
    }
    send(answer, given);
    if (fault && given.status < 300) {
      if (!answer.closed) {
        await new Promise<void>((resolve) => answer.once("close", resolve));
      }
      await this.#inject(fault, write);
    }
  }

  async #read(request: IncomingMessage, url: URL, answer: ServerResponse): Promise<void> {
    const key = `${url.pathname}${url.search}`;
    const stale = this.#stale.get(key);
    if (stale) {
      this.#stale.delete(key);
      this.repeated += 1;
      send(answer, stale);
      return;
    }
    const given = await this.#forward(request, Buffer.alloc(0));
    // A reflector lists all that it watches; a live read is of one project or one object.
    if (url.searchParams.has("limit") && given.status === 200) {
      this.#lists.set(key, given);
    }
    send(answer, given);
  }

  #watch(request: IncomingMessage, answer: ServerResponse): void {
    if (this.#watchesRefused) {
      answer.destroy();
      return;
    }
    const sent = this.#send(request, (upstream) => {
      const watch = { answer, upstream };
      this.#watches.add(watch);
      answer.writeHead(upstream.statusCode ?? 502, upstream.headers);
      answer.flushHeaders();
      upstream.on("data", (chunk: Buffer) => answer.write(chunk));
      upstream.once("close", () => {
        this.#watches.delete(watch);
        answer.end();
      });
      if (this.#watchesPaused) {
        upstream.pause();
      }
    });
    sent.once("error", () => answer.destroy());
    answer.once("close", () => sent.destroy());
    sent.end();
  }

  #forward(request: IncomingMessage, body: Buffer): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const sent = this.#send(request, (upstream) => {
        const chunks: Buffer[] = [];
        upstream.on("data", (chunk: Buffer) => chunks.push(chunk));
        upstream.once("error", reject);
        upstream.once("end", () =>
          resolve({
            status: upstream.statusCode ?? 502,
            headers: upstream.headers,
            body: Buffer.concat(chunks),
          }),
        );
      });
      sent.once("error", reject);
      sent.end(body);
    });
  }

  #send(request: IncomingMessage, onAnswer: (upstream: IncomingMessage) => void) {
    const { host: _host, connection: _connection, ...headers } = request.headers;
    const url = new URL(request.url ?? "/", this.#options.upstream);
    return httpsRequest(url, { method: request.method, headers, agent: this.#agent }, onAnswer);
  }

  /** One at a time: a kill ends every other request in progress. */
  #take(write: Write): Fault | undefined {
    if (this.#injecting) {
      return undefined;
    }
    const index = this.faults.findIndex(({ kind }) => kind === write.kind);
    if (index < 0) {
      return undefined;
    }
    this.#injecting = true;
    return this.faults.splice(index, 1)[0];
  }

  #putBack(fault: Fault): void {
    this.#injecting = false;
    this.faults.unshift(fault);
  }

  async #inject(fault: Fault, write: Write): Promise<void> {
    fault.write = write;
    this.injected.push(fault);
    try {
      await this.#options.killOperator();
    } finally {
      this.#injecting = false;
    }
  }
}

function send(answer: ServerResponse, { status, headers, body }: Answer): void {
  const { "transfer-encoding": _encoding, connection: _connection, ...kept } = headers;
  answer.writeHead(status, { ...kept, "content-length": String(body.length) });
  answer.end(body);
}
