import { Agent, type RequestOptions, request } from "node:https";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { type AddressOptions, addressOf } from "./address.ts";
import type { Credentials } from "./credentials.ts";
import { exportRequest, rejectedRecords, retryAfterMs } from "./otlp.ts";
import { connectionFailure, DeliveryError, type OutgoingLine, type Receiver } from "./receiver.ts";

const compress = promisify(gzip);

/** Bytes of an answer that are read. */
const ANSWER_BYTES = 64 * 1024;

/** What says that this batch is never taken. Everything else may be another answer once the receiver or the drain is as it should be. */
const REFUSALS = new Set([400, 406, 411, 413, 414, 415, 422, 431]);

interface Answer {
  status: number;
  retryAfter: string | undefined;
  body: string;
}

/** A receiver of OTLP over HTTP. It follows no redirects: headers have credentials. */
export class OtlpReceiver implements Receiver {
  readonly #url: URL;
  readonly #credentials: Credentials;
  readonly #options: AddressOptions;
  readonly #agent: Agent;

  constructor(endpoint: string, credentials: Credentials, options: AddressOptions) {
    this.#url = new URL(`${endpoint}/v1/logs`);
    this.#credentials = credentials;
    this.#options = options;
    // Of a connection that is kept the address has been judged.
    this.#agent = new Agent({ keepAlive: true, maxSockets: 1, timeout: 60_000 });
  }

  async send(lines: readonly OutgoingLine[], signal: AbortSignal): Promise<{ refused: number }> {
    const { status, retryAfter, body } = await this.#post(await compress(exportRequest(lines)), signal);
    if (status >= 200 && status < 300) {
      return { refused: Math.min(rejectedRecords(body), lines.length) };
    }
    if (REFUSALS.has(status)) {
      return { refused: lines.length };
    }
    const isAway = [429, 502, 503, 504].includes(status);
    throw new DeliveryError(
      isAway ? "ReceiverUnavailable" : "ReceiverRefused",
      `the receiver answers with ${status}`,
      { retryAfterMs: retryAfterMs(retryAfter, Date.now()) },
    );
  }

  close(): void {
    this.#agent.destroy();
  }

  async #post(body: Buffer, signal: AbortSignal): Promise<Answer> {
    const { hostname } = this.#url;
    const port = Number(this.#url.port || 443);
    const { headers, tls } = this.#credentials;
    const options: RequestOptions = {
      ...{ method: "POST", agent: this.#agent, signal, hostname: hostname.replace(/^\[|\]$/g, ""), port },
      ...{ path: this.#url.pathname, ...tls },
      headers: {
        ...headers,
        "content-type": "application/json",
        "content-encoding": "gzip",
        "content-length": body.length,
        "user-agent": "slipway",
      },
    };
    try {
      // Also of a literal address, which needs no lookup.
      const address = await addressOf(hostname, port, this.#options);
      return await exchange({ ...options, lookup: pinned(address) }, body);
    } catch (error) {
      throw connectionFailure(error);
    }
  }
}

/** A lookup that answers with the address that was judged. */
const pinned =
  (address: string): NonNullable<RequestOptions["lookup"]> =>
  (_, { all }, callback) => {
    const family = address.includes(":") ? 6 : 4;
    if (all) {
      callback(null, [{ address, family }]);
    } else {
      callback(null, address, family);
    }
  };

function exchange(options: RequestOptions, body: Buffer): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(options, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      const end = () => {
        const { statusCode: status = 0, headers } = response;
        resolve({ status, retryAfter: headers["retry-after"], body: Buffer.concat(chunks).toString("utf8") });
      };
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > ANSWER_BYTES) {
          // What it says beyond that changes nothing.
          end();
          response.destroy();
          return;
        }
        chunks.push(chunk);
      });
      response.on("end", end);
      response.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
