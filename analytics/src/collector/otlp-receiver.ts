import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import type { AccessEvent } from "../event.ts";
import { MinuteBounds } from "../store/bounds.ts";
import { type AccessLine, readAccessFields } from "./access-line.ts";
import type { TrustedProxies } from "./client-address.ts";
import type { CollectorMetrics } from "./metrics.ts";
import type { Owner } from "./names.ts";
import { decodeJson, decodeProtobuf, type ExportRequest, fieldsOf, recordsOf } from "./otlp-format.ts";
import type { NoOwner } from "./resolver.ts";
import type { Log } from "./sender.ts";
import type { Spool } from "./spool.ts";

export interface ReceiverOptions {
  spool: Spool;
  /** Bytes of batches on the disk from which on nothing more is taken. */
  maxBufferBytes: number;
  resolve: (line: AccessLine) => Owner | NoOwner;
  isTrusted: TrustedProxies;
  metrics: CollectorMetrics;
  log: Log;
}

/** Bytes of a request as it comes, and unpacked; requests at once. */
const MAX_BODY = 8 * 1024 * 1024;
const MAX_UNPACKED = 32 * 1024 * 1024;
const MAX_REQUESTS = 16;
/** How many of the last batches are known by their content. */
const REMEMBERED = 1_000;

const unpack = promisify(gunzip);

/** A refusal with its status; 4xx ends an exporter's tries, 503 has it try again. */
class Refused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * Takes access logs over OTLP/HTTP (`POST /v1/logs`; protobuf or JSON, plain or gzip). Answered with 200 once the events are on
 * the disk: an exporter that sends again until then loses nothing. A batch's id is made of its bytes, so one that comes twice
 * in the same bytes, as exporters send it again, counts once.
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
      if (status === 503) log.warn({ err: error }, "logs could not be taken in");
      const headers = { "content-type": "text/plain", ...(status === 503 ? { "retry-after": "1" } : {}) };
      response.writeHead(status, headers).end(error instanceof Refused ? error.message : "try again");
    } finally {
      this.#requests -= 1;
    }
  }

  async #take(request: IncomingMessage): Promise<void> {
    const { spool, maxBufferBytes, metrics } = this.#options;
    if (request.url !== "/v1/logs") throw new Refused(404, "not found");
    if (request.method !== "POST") throw new Refused(405, "POST alone");
    if (this.#requests > MAX_REQUESTS || spool.bytes >= maxBufferBytes) throw new Refused(503, "full");
    const type = typeOf(request);
    if (type !== "application/json" && type !== "application/x-protobuf")
      throw new Refused(415, "protobuf or JSON");
    const body = await bodyOf(request);
    const id = `otlp-${createHash("sha256").update(body).digest("hex").slice(0, 40)}`;
    // A second try may come while the first is still being written.
    const before = this.#known.get(id);
    if (before !== undefined) return before;
    const events = this.#eventsOf(decode(type, body));
    if (events.length === 0) return;
    const written = spool.add(events, undefined, id);
    this.#remember(id, written);
    await written;
    metrics.batchMade(events.length);
  }

  #remember(id: string, written: Promise<void>): void {
    this.#known.set(id, written);
    written.catch(() => this.#known.delete(id));
    const [oldest = ""] = this.#known.keys();
    if (this.#known.size > REMEMBERED) this.#known.delete(oldest);
  }

  #eventsOf(request: ExportRequest): AccessEvent[] {
    const { isTrusted, resolve, metrics } = this.#options;
    return recordsOf(request).flatMap((record) => {
      const line = readAccessFields(fieldsOf(record), isTrusted);
      const owner = typeof line === "string" ? line : resolve(line);
      if (typeof owner === "object" && typeof line === "object") {
        return [this.#bounds.bound({ ...owner, ...line.event })];
      }
      if (typeof owner === "string") metrics.refused(owner);
      return [];
    });
  }
}

function typeOf(request: IncomingMessage): string {
  return (request.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
}

/** @throws Refused when there is too much of it, or it cannot be unpacked */
async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  let parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    // Read on for a while, so that the client hears the answer.
    if (bytes > 4 * MAX_BODY) break;
    if (bytes > MAX_BODY) parts = [];
    else parts.push(part);
  }
  if (bytes > MAX_BODY) throw new Refused(413, "too long");
  const body = Buffer.concat(parts);
  const encoding = request.headers["content-encoding"] ?? "identity";
  if (encoding === "identity") return body;
  if (encoding !== "gzip") throw new Refused(415, "gzip or nothing");
  try {
    return await unpack(body, { maxOutputLength: MAX_UNPACKED });
  } catch {
    throw new Refused(400, "cannot be unpacked");
  }
}

function decode(type: string, body: Buffer): ExportRequest {
  try {
    return type === "application/json" ? decodeJson(body.toString("utf8")) : decodeProtobuf(body);
  } catch {
    throw new Refused(400, "no logs");
  }
}
