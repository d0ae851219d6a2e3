/** A registry, as far as publishing needs it: the distribution API over TLS, with the token that the push was given. */

import { type IncomingHttpHeaders, Agent as PlainAgent, request as plainRequest } from "node:http";
import { Agent, request } from "node:https";
import { pipeline } from "node:stream/promises";
import type { Blob, OpenedImage } from "./image.ts";

export interface RegistryOptions {
  /** `host[:port]/path`, without tag and digest. */
  repository: string;
  token?: string;
  /** PEM of authorities in the place of the public ones. */
  ca?: string;
  signal: AbortSignal;
}

/** A connection without traffic for so long is closed, in milliseconds: another try may find the registry. */
const SILENCE_MS = 120_000;

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** What the registry said instead of yes. */
export class Refused extends Error {
  override name = "Refused";
  /** It would say the same again. */
  readonly isFinal: boolean;

  constructor(what: string, { status, text }: Answer) {
    super(`${what}: status code ${status} ${text.trim()}`.trim());
    this.isFinal = status === 401 || status === 403;
  }
}

const AT_ONCE = 4;
const MAX_ANSWER_BYTES = 4_096;
const CHUNK_BYTES = 256 * 1024;
const LOOPBACK = /^(127\.0\.0\.1|localhost|\[::1\])(:|$)/;

export class Registry {
  readonly #options: RegistryOptions;
  readonly #base: URL;
  readonly #agent: PlainAgent;

  constructor(options: RegistryOptions) {
    this.#options = options;
    const [host = "", ...path] = options.repository.split("/");
    const isPlain = LOOPBACK.test(host);
    this.#base = new URL(`${isPlain ? "http" : "https"}://${host}/v2/${path.join("/")}/`);
    const settings = { keepAlive: true, maxSockets: AT_ONCE };
    this.#agent = isPlain ? new PlainAgent(settings) : new Agent({ ...settings, ca: options.ca });
  }

  /** Publishes an image; what the registry has already is not sent again. @throws Refused, or the connection's error */
  async push({ blobs, manifest, mediaType, digest }: OpenedImage, tag = digest): Promise<void> {
    const left = [...blobs];
    const worker = async (): Promise<void> => {
      for (let blob = left.shift(); blob !== undefined; blob = left.shift()) {
        await this.#pushBlob(blob);
      }
    };
    const ended = await Promise.allSettled(
      Array.from({ length: AT_ONCE }, () => worker().finally(() => left.splice(0))),
    );
    for (const each of ended) {
      if (each.status === "rejected") {
        throw each.reason;
      }
    }
    const headers = { "content-type": mediaType };
    await this.#expect(201, "PUT", this.#at(`manifests/${tag}`), { headers, body: manifest });
  }

  close(): void {
    this.#agent.destroy();
  }

  async #pushBlob(blob: Blob): Promise<void> {
    const known = await this.#send("HEAD", this.#at(`blobs/${blob.digest}`), {});
    // A registry may redirect to where it keeps them.
    if (known.status >= 200 && known.status < 400) {
      return;
    }
    if (known.status !== 404) {
      throw new Refused("HEAD of a layer", known);
    }
    const { headers } = await this.#expect(202, "POST", this.#at("blobs/uploads/"), {});
    // Whatever host it names: the token goes to the registry alone.
    const { pathname, search } = new URL(headers.location ?? "", this.#base);
    const target = new URL(this.#base);
    target.pathname = pathname;
    target.search = search;
    target.searchParams.set("digest", blob.digest);
    await this.#expect(201, "PUT", target, { body: blob });
  }

  readonly #at = (path: string): URL => new URL(path, this.#base);

  async #expect(
    status: number,
    method: string,
    url: URL,
    what: { headers?: Record<string, string>; body?: Buffer | Blob },
  ): Promise<Answer> {
    const answer = await this.#send(method, url, what);
    if (answer.status !== status) {
      throw new Refused(`${method} ${url.pathname}`, answer);
    }
    return answer;
  }

  #send(
    method: string,
    url: URL,
    { headers, body }: { headers?: Record<string, string>; body?: Buffer | Blob },
  ): Promise<Answer> {
    const { token, signal } = this.#options;
    const length = body === undefined ? 0 : Buffer.isBuffer(body) ? body.length : body.size;
    return new Promise((resolve, reject) => {
      const outgoing = (url.protocol === "http:" ? plainRequest : request)(url, {
        method,
        agent: this.#agent,
        signal,
        timeout: SILENCE_MS,
        headers: {
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined && method === "HEAD" ? {} : { "content-length": length }),
          ...(Buffer.isBuffer(body) ? {} : { "content-type": "application/octet-stream" }),
          ...headers,
        },
      });
      outgoing.on("error", reject);
      outgoing.on("timeout", () => outgoing.destroy(new Error("The registry fell silent.")));
      outgoing.on("response", (response) => {
        let text = "";
        response.on("data", (chunk: Buffer) => {
          if (text.length < MAX_ANSWER_BYTES) {
            text += chunk.toString("utf8");
          }
        });
        response.on("error", () => undefined);
        response.on("close", () => {
          // It may have said no before it had read all.
          if (!outgoing.writableFinished) {
            outgoing.destroy();
          }
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
        });
      });
      if (body === undefined || Buffer.isBuffer(body)) {
        outgoing.end(body);
        return;
      }
      // Its failure is the request's; an answer that comes before the end of it ends both.
      pipeline(contentOf(body), outgoing).catch(() => undefined);
    });
  }
}

/** As much of a file as it had when it was opened. */
async function* contentOf({ file, size }: Blob): AsyncGenerator<Buffer> {
  for (let at = 0; at < size; ) {
    const room = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size - at));
    const { bytesRead } = await file.read(room, 0, room.length, at);
    // Otherwise the registry would wait for the rest.
    if (bytesRead === 0) {
      throw new Error("the image has changed");
    }
    at += bytesRead;
    yield room.subarray(0, bytesRead);
  }
}
