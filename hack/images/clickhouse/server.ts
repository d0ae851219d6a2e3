import { randomBytes, randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createBrotliCompress, createDeflate, createGzip, createZstdCompress } from "node:zlib";
import type { Access } from "./access.ts";
import { Body, decoded } from "./body.ts";
import { failure, failureOf, statusOf } from "./errors.ts";
import { type Answer, type Execution, execute, type Summary } from "./execute.ts";
import { readRequest } from "./request.ts";

export interface Dependencies extends Omit<Execution, "changeUsers"> {
  access: Access;
  /** Called for what is no client's fault. */
  onError: (error: Error) => void;
  /** Called when the engine has given up for good. */
  onBroken: (error: Error) => void;
}

/** What the engine says to everybody once it has met a fatal error. */
const ABORTED = 236;

/** Parameters of a form: no more than this. */
const FORM_BYTES = 16 * 1024 * 1024;

/** Answers requests as ClickHouse's HTTP interface does. */
export function handler(
  dependencies: Dependencies,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    respond(dependencies, request, response).catch((error: unknown) => {
      // The client has disconnected, or got the error within its answer.
      if (!response.writableFinished) {
        response.destroy();
      }
      if (!isDisconnect(error)) {
        dependencies.onError(error instanceof Error ? error : new Error(String(error)));
      }
    });
  };
}

async function respond(
  dependencies: Dependencies,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? "/", "http://localhost");
  response.setHeader("X-ClickHouse-Server-Display-Name", "chdb");
  response.setHeader("X-ClickHouse-Timezone", "UTC");
  if (/^\/(ping|replicas_status)?$/.test(url.pathname) && isPlain(request, url)) {
    response.writeHead(200, { "Content-Type": "text/plain; charset=UTF-8" }).end("Ok.\n");
    return;
  }
  try {
    const answer = await answerTo(dependencies, request, url, response);
    try {
      await send(answer, request, response, url.searchParams);
    } finally {
      await answer.close();
    }
  } catch (error) {
    if (failureOf(error).code === ABORTED) {
      dependencies.onBroken(failureOf(error));
    }
    if (response.headersSent) {
      throw error;
    }
    sendFailure(error, request, response);
  }
}

/** A request that asks for nothing: whether the server is there. */
function isPlain(request: IncomingMessage, url: URL): boolean {
  return (
    url.pathname !== "/" || ((request.method === "GET" || request.method === "HEAD") && url.search === "")
  );
}

async function answerTo(
  { access, native, connections }: Dependencies,
  request: IncomingMessage,
  url: URL,
  response: ServerResponse,
): Promise<Answer> {
  if (url.pathname !== "/") {
    throw failure("BAD_ARGUMENTS", `There is no handle ${url.pathname}.`);
  }
  if (request.method !== "GET" && request.method !== "POST") {
    throw failure("BAD_ARGUMENTS", `Method ${request.method} is not supported.`);
  }
  const body = new Body(decoded(request));
  const isForm = /^multipart\/form-data/i.test(request.headers["content-type"] ?? "");
  // Who asks is known before anything is read that may be long.
  const asked = readRequest(request.headers, url.searchParams);
  const user = access.authenticate(asked.user, asked.password);
  const parameters = isForm ? await withForm(url.searchParams, request, body) : url.searchParams;
  const query = isForm ? readRequest(request.headers, parameters) : asked;
  response.setHeader("X-ClickHouse-Query-Id", query.queryId ?? randomUUID());
  return execute(
    { native, connections, changeUsers: (text, by) => access.carryOut(text, by) },
    {
      request: query,
      user,
      body: isForm ? new Body(Readable.from([])) : body,
      mayWrite: request.method === "POST",
    },
  );
}

/** Parameters of the address and of the form in the body. */
async function withForm(
  parameters: URLSearchParams,
  request: IncomingMessage,
  body: Body,
): Promise<URLSearchParams> {
  const headers = { "content-type": request.headers["content-type"] ?? "" };
  const form = await new Response(await body.all(FORM_BYTES), { headers }).formData().catch(() => {
    throw failure("BAD_ARGUMENTS", "The form is not understood.");
  });
  const all = new URLSearchParams(parameters);
  for (const [name, value] of form) {
    if (typeof value !== "string") {
      throw failure("NOT_IMPLEMENTED", "External tables are not supported by this server.");
    }
    all.append(name, value);
  }
  return all;
}

const encoders = {
  zstd: createZstdCompress,
  br: createBrotliCompress,
  gzip: createGzip,
  deflate: createDeflate,
} as const;

async function send(
  answer: Answer,
  request: IncomingMessage,
  response: ServerResponse,
  parameters: URLSearchParams,
): Promise<void> {
  const mayCompress = parameters.get("enable_http_compression") === "1";
  const encoding = mayCompress ? acceptedEncoding(request.headers["accept-encoding"]) : undefined;
  const tag = randomBytes(8).toString("hex");
  response.writeHead(200, {
    "Content-Type": contentType(answer.format),
    ...(answer.format === undefined ? {} : { "X-ClickHouse-Format": answer.format }),
    "X-ClickHouse-Summary": summaryText(answer.summary),
    "X-ClickHouse-Exception-Tag": tag,
    ...(encoding === undefined ? {} : { "Content-Encoding": encoding }),
  });
  const source = Readable.from(withLateFailure(answer.chunks, tag), { objectMode: false });
  if (encoding === undefined) {
    await pipeline(source, response);
  } else {
    await pipeline(source, encoders[encoding](), response);
  }
}

/** A failure behind the first rows is reported behind them, as ClickHouse does since 25.11. */
async function* withLateFailure(chunks: AsyncIterable<Uint8Array>, tag: string): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks;
  } catch (error) {
    const message = `${failureOf(error).message}\n`;
    const mark = "__exception__";
    yield Buffer.from(
      `\r\n${mark}\r\n${tag}\r\n${message}${Buffer.byteLength(message)} ${tag}\r\n${mark}\r\n`,
    );
  }
}

/** The first of the ways to compress that the client takes. */
export function acceptedEncoding(header: string | string[] | undefined): keyof typeof encoders | undefined {
  const accepted = String(header ?? "")
    .split(",")
    .filter((one) => !/;\s*q=0(\.0*)?\s*$/.test(one))
    .map((one) => one.split(";")[0]?.trim().toLowerCase());
  return (["gzip", "zstd", "br", "deflate"] as const).find((name) => accepted.includes(name));
}

/** As ClickHouse names its formats' types. */
export function contentType(format: string | undefined): string {
  if (format === undefined || /^(TabSeparated|TSV)/i.test(format)) {
    return "text/tab-separated-values; charset=UTF-8";
  }
  if (/^CSV/i.test(format)) {
    return "text/csv; charset=UTF-8; header=absent".replace(
      /absent$/,
      /names/i.test(format) ? "present" : "absent",
    );
  }
  if (/^JSON(Compact)?(Strings)?EachRow|^(NDJSON|JSONLines)/i.test(format)) {
    return "application/x-ndjson; charset=UTF-8";
  }
  if (/^JSON/i.test(format)) {
    return "application/json; charset=UTF-8";
  }
  if (/^(RowBinary|Native|Parquet|Arrow|ORC|Avro|MsgPack|Protobuf)/i.test(format)) {
    return "application/octet-stream";
  }
  if (/^XML$/i.test(format)) {
    return "application/xml; charset=UTF-8";
  }
  return "text/plain; charset=UTF-8";
}

function summaryText(summary: Summary): string {
  return JSON.stringify({
    read_rows: String(summary.readRows),
    read_bytes: String(summary.readBytes),
    written_rows: String(summary.writtenRows),
    written_bytes: String(summary.writtenBytes),
    total_rows_to_read: "0",
    elapsed_ns: String(summary.elapsedNs),
  });
}

function sendFailure(error: unknown, request: IncomingMessage, response: ServerResponse): void {
  const failed = failureOf(error);
  // What the client still sends is taken, a little of it, so that it comes to read the answer.
  request.resume();
  response.writeHead(statusOf(failed), {
    "Content-Type": "text/plain; charset=UTF-8",
    "X-ClickHouse-Exception-Code": String(failed.code),
    ...(request.complete ? {} : { Connection: "close" }),
  });
  response.end(`${failed.message}\n`);
}

function isDisconnect(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return code === "ERR_STREAM_PREMATURE_CLOSE" || code === "ECONNRESET" || code === "EPIPE";
}
