import { createHash, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AccessEvent, MinuteBounds } from "@slipway/analytics";
import { type Clock, sleep } from "@slipway/process";
import { type AccessLine, type LineRefusal, readAccessFields } from "./access-line.ts";
import type { TrustedProxies } from "./client-address.ts";
import type { DiskQuota } from "./disk-quota.ts";
import { readHttpRecord } from "./http-record.ts";
import type { CollectorMetrics } from "./metrics.ts";
import {
  decodeJson,
  decodeProtobuf,
  fieldsOf,
  recordsOf,
  type Signal,
  type Telemetry,
} from "./otlp-format.ts";
import { bodyOf, MAX_BODY, Refused, typeOf } from "./otlp-request.ts";
import { msUntilGivenUp, type NoOwner, UNKNOWN_MS } from "./resolver.ts";
import type { Log } from "./sender.ts";
import type { Spool } from "./spool.ts";
import type { Owner } from "./traefik-names.ts";

export interface ReceiverOptions {
  spool: Spool;
  /** While it is full nothing more is taken. */
  quota: Pick<DiskQuota, "isFull">;
  resolve: (line: AccessLine) => Owner | NoOwner;
  isTrusted: TrustedProxies;
  /** File with the token that senders have to show, read for every request; undefined: none is required. */
  tokenFile: string | undefined;
  metrics: CollectorMetrics;
  log: Log;
  clock: Clock;
}

/** Concurrent requests. */
const MAX_REQUESTS = 8;
/** Unpacked bytes of all concurrent requests: parsed, they need ten times as much memory. */
const MAX_AT_WORK = 2 * MAX_BODY;
/** How many of the last batches are known by their content. */
const REMEMBERED = 1_000;
/** Between checks whether a project's objects are known by now. */
const POLL_INTERVAL_MS = 50;

const SIGNALS: Readonly<Record<string, Signal>> = { "/v1/logs": "logs", "/v1/traces": "traces" };

/**
 * Receives records of requests from ingresses over OTLP/HTTP (`POST /v1/logs` and `/v1/traces`; protobuf or JSON, plain or gzip): in
 * Traefik's names of its access log, or by the semantic conventions. Answered with 200 once the events are on the disk: an
 * exporter that sends again until then loses nothing. A batch's id is made of its bytes, so one that comes twice in the same
 * bytes, as exporters send it again, counts once.
 */
export function createReceiver(options: ReceiverOptions): Server {
  const receiver = new Receiver(options);
  return createServer(
    { requestTimeout: 30_000 },
    (request, response) => void receiver.answer(request, response),
  );
}

class Receiver {
  readonly #options: ReceiverOptions;
  readonly #bounds = new MinuteBounds();
  readonly #known = new Map<string, Promise<void>>();
  #requests = 0;
  #bytes = 0;

  constructor(options: ReceiverOptions) {
    this.#options = options;
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { metrics, log } = this.#options;
    this.#requests += 1;
    try {
      await this.#take(request);
      const isJson = typeOf(request) === "application/json";
      response.writeHead(200, { "content-type": isJson ? "application/json" : "application/x-protobuf" });
      response.end(isJson ? "{}" : "");
    } catch (error) {
      metrics.failed("receive");
      const status = error instanceof Refused ? error.status : 503;
      if (status === 503) {
        log.warn({ err: error }, "logs could not be taken in");
      }
      const headers = { "content-type": "text/plain", ...(status === 503 ? { "retry-after": "1" } : {}) };
      response.writeHead(status, headers).end(error instanceof Refused ? error.message : "try again");
    } finally {
      this.#requests -= 1;
    }
  }

  async #take(request: IncomingMessage): Promise<void> {
    const signal = SIGNALS[request.url ?? ""];
    if (!signal) {
      throw new Refused(404, "not found");
    }
    if (request.method !== "POST") {
      throw new Refused(405, "POST alone");
    }
    await this.#admit(request);
    if (this.#requests > MAX_REQUESTS || (await this.#options.quota.isFull())) {
      throw new Refused(503, "full");
    }
    const type = typeOf(request);
    if (type !== "application/json" && type !== "application/x-protobuf") {
      throw new Refused(415, "protobuf or JSON");
    }
    const body = await bodyOf(request);
    const id = `otlp-${createHash("sha256").update(body).digest("hex").slice(0, 40)}`;
    // A second try may come while the first is still being written.
    const before = this.#known.get(id);
    if (before !== undefined) {
      return before;
    }
    if (this.#bytes + body.length > MAX_AT_WORK) {
      throw new Refused(503, "full");
    }
    this.#bytes += body.length;
    try {
      const written = this.#write(id, this.#linesOf(signal, type, body));
      this.#remember(id, written);
      await written;
    } finally {
      this.#bytes -= body.length;
    }
  }

  async #admit({ headers }: IncomingMessage): Promise<void> {
    const { tokenFile } = this.#options;
    if (tokenFile === undefined) {
      return;
    }
    const digest = (text: string) => createHash("sha256").update(text).digest();
    const token = (await readFile(tokenFile, "utf8")).trim();
    const isRight = timingSafeEqual(digest(headers.authorization ?? ""), digest(`Bearer ${token}`));
    if (token === "" || !isRight) {
      throw new Refused(401, "a token is needed");
    }
  }

  /** @throws Refused for what is no such message */
  #linesOf(signal: Signal, type: string, body: Buffer): (AccessLine | LineRefusal)[] {
    try {
      const isJson = type === "application/json";
      const request = isJson ? decodeJson(body.toString("utf8")) : decodeProtobuf(signal, body);
      return recordsOf(signal, request).map((telemetry) => this.#lineOf(telemetry));
    } catch {
      throw new Refused(400, `no ${signal}`);
    }
  }

  async #write(id: string, lines: (AccessLine | LineRefusal)[]): Promise<void> {
    const { spool, metrics } = this.#options;
    const events = await this.#eventsOf(lines);
    if (events.length === 0) {
      return;
    }
    await spool.add(events, undefined, id);
    metrics.batchMade(events.length);
  }

  #remember(id: string, written: Promise<void>): void {
    this.#known.set(id, written);
    written.catch(() => this.#known.delete(id));
    const [oldest = ""] = this.#known.keys();
    if (this.#known.size > REMEMBERED) {
      this.#known.delete(oldest);
    }
  }

  async #eventsOf(lines: (AccessLine | LineRefusal)[]): Promise<AccessEvent[]> {
    const { metrics } = this.#options;
    const owners = await this.#ownersOf(lines);
    return lines.flatMap((line, index) => {
      const owner = owners[index];
      if (typeof owner === "object" && typeof line === "object") {
        return [this.#bounds.bound({ ...owner, ...line.event })];
      }
      if (typeof owner === "string") {
        metrics.refused(owner);
      }
      return [];
    });
  }

  #lineOf(telemetry: Telemetry): AccessLine | LineRefusal {
    const { isTrusted } = this.#options;
    const fields = fieldsOf(telemetry.record);
    const isTraefiks = fields.RequestMethod !== undefined || fields.DownstreamStatus !== undefined;
    return isTraefiks ? readAccessFields(fields, isTrusted) : readHttpRecord(telemetry, isTrusted);
  }

  /** Whose the requests are. The ingress may observe a project before this process does: those are resolved again. */
  async #ownersOf(lines: (AccessLine | LineRefusal)[]): Promise<(Owner | NoOwner | LineRefusal)[]> {
    const { resolve, clock } = this.#options;
    const start = clock.monotonic();
    for (;;) {
      const owners = lines.map((line) => (typeof line === "string" ? line : resolve(line)));
      const now = clock.now();
      const longest = lines.reduce((ms, line, index) => {
        const isUnknown = typeof line === "object" && owners[index] === "unknown";
        return isUnknown ? Math.max(ms, msUntilGivenUp(line, now)) : ms;
      }, 0);
      // Another machine's clock may be ahead.
      const left = Math.min(longest, UNKNOWN_MS - (clock.monotonic() - start));
      if (left <= 0) {
        return owners;
      }
      await sleep(clock, Math.min(left, POLL_INTERVAL_MS));
    }
  }
}
