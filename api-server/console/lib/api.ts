import { parseExact } from "./exact.ts";
import { EventParser, type StreamEvent } from "./sse.ts";

/** A refusal of the API, or its silence. */
export class ApiFailure extends Error {
  /** HTTP status; 0 when nothing answered. */
  readonly status: number;
  /** Stable code of the failure envelope. */
  readonly code: string;
  /** Seconds after which to retry, where the API says so. */
  readonly retryAfter: number | undefined;
  /** Grants that the key lacks, where that is why. */
  readonly required: readonly string[];

  constructor(
    status: number,
    code: string,
    message: string,
    { retryAfter, required = [] }: { retryAfter?: number | undefined; required?: readonly string[] } = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
    this.required = required;
  }
}

/** The success envelope. */
export interface Envelope<Data> {
  data: Data;
  /** Of logs: names of the instances that were read. */
  instances?: string[];
  unavailable_instances?: string[];
  pagination?: { page: number; limit: number; total: number };
}

export type Query = Readonly<Record<string, string | number | undefined>>;

const common: RequestInit = {
  credentials: "omit",
  cache: "no-store",
  redirect: "error",
  referrerPolicy: "no-referrer",
};
const TIMEOUT_MS = 20_000;

/** The `/v1` API as one key sees it. The key goes into a header, never into an address. */
export class Api {
  readonly #key: string;
  readonly #refused: () => void;

  /** @param refused called when the key is no longer valid */
  constructor(key: string, refused: () => void) {
    this.#key = key;
    this.#refused = refused;
  }

  /** @throws ApiFailure; whatever the signal was aborted with */
  async get<Data>(path: string, query: Query, signal: AbortSignal): Promise<Envelope<Data>> {
    return (await (await this.#read(path, query, "application/json", signal)).json()) as Envelope<Data>;
  }

  /**
   * The same with every number as its text: amounts have more digits than a number.
   * @throws ApiFailure; whatever the signal was aborted with
   */
  async getExact<Data>(path: string, query: Query, signal: AbortSignal): Promise<Envelope<Data>> {
    const response = await this.#read(path, query, "application/json", signal);
    return parseExact(await response.text()) as Envelope<Data>;
  }

  /**
   * A document that is no JSON, such as `text/csv`, as bytes of that type alone.
   * @throws ApiFailure; whatever the signal was aborted with
   */
  async file(path: string, query: Query, type: string, signal: AbortSignal): Promise<Blob> {
    const response = await this.#read(path, query, type, signal);
    if (!response.headers.get("content-type")?.startsWith(type)) {
      throw new ApiFailure(0, "NO_DOCUMENT", "The server sent no such document.");
    }
    return new Blob([await response.arrayBuffer()], { type: `${type};charset=utf-8` });
  }

  #read(path: string, query: Query, accept: string, signal: AbortSignal): Promise<Response> {
    const withTimeout = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
    return this.#send(address(path, query), { headers: { accept } }, withTimeout, signal);
  }

  /**
   * Changes something. It is sent once, whatever becomes of it.
   * @throws ApiFailure; whatever the signal was aborted with
   */
  async change<Data>(
    method: "POST" | "PUT" | "PATCH" | "DELETE",
    path: string,
    body: object | undefined,
    signal: AbortSignal,
  ): Promise<Envelope<Data>> {
    const withTimeout = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const headers: Record<string, string> = { accept: "application/json" };
    if (body !== undefined) {
      headers["content-type"] = "application/json";
    }
    const init = { method, headers, body: JSON.stringify(body) };
    const response = await this.#send(address(path, {}), init, withTimeout, signal);
    return (await response.json()) as Envelope<Data>;
  }

  /**
   * Events as the server sends them, until it ends the stream.
   * @param after id of the last event that is known
   * @param opened called once the server answers
   * @throws ApiFailure; whatever the signal was aborted with
   */
  async *events(
    path: string,
    query: Query,
    signal: AbortSignal,
    after?: string,
    opened?: () => void,
  ): AsyncGenerator<StreamEvent, void> {
    const headers = {
      accept: "text/event-stream",
      ...(after === undefined ? {} : { "last-event-id": after }),
    };
    const response = await this.#send(address(path, query), { headers }, signal, signal);
    if (!response.headers.get("content-type")?.startsWith("text/event-stream") || response.body === null) {
      throw new ApiFailure(0, "NO_STREAM", "the server sent no stream");
    }
    opened?.();
    const parser = new EventParser();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    try {
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        yield* parser.push(piece.value);
      }
    } finally {
      // Of a stream that has failed there is nothing to cancel.
      await reader.cancel().catch(() => undefined);
    }
  }

  async #send(
    url: string,
    { headers, ...init }: RequestInit & { headers: Record<string, string> },
    withTimeout: AbortSignal,
    signal: AbortSignal,
  ): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(url, {
        ...common,
        ...init,
        headers: { ...headers, "x-api-key": this.#key },
        signal: withTimeout,
      });
    } catch (error) {
      if (signal.aborted) {
        throw error;
      }
      throw new ApiFailure(0, "UNREACHABLE", "The server does not answer.");
    }
    if (response.ok) {
      return response;
    }
    const failure = await readFailure(response);
    if (failure.status === 401) {
      this.#refused();
    }
    throw failure;
  }
}

async function readFailure(response: Response): Promise<ApiFailure> {
  const said: unknown = await response.json().catch(() => undefined);
  const { code, message, required } = (said ?? {}) as Record<string, unknown>;
  const wait = Number(response.headers.get("retry-after") ?? Number.NaN);
  return new ApiFailure(
    response.status,
    typeof code === "string" ? code : "UNKNOWN",
    typeof message === "string" ? message : `The server answered ${response.status}.`,
    {
      retryAfter: Number.isFinite(wait) ? wait : undefined,
      required: Array.isArray(required) ? required.map(String) : [],
    },
  );
}

function address(path: string, query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return search === "" ? path : `${path}?${search}`;
}

/** Path of an operation on a project; every part is one segment, whatever it contains. */
export const projectPath = (project: string, ...parts: readonly string[]): string =>
  ["/v1/project", ...[project, ...parts].map(encodeURIComponent)].join("/");
