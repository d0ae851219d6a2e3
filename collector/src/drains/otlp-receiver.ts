import { Agent, type RequestOptions, request } from "node:https";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { type AddressOptions, receiverAddress } from "./address.ts";
import { connectionFailure } from "./connection-failure.ts";
import type { Credentials } from "./credentials.ts";
import { exportRequest, rejectedRecords, retryAfterMs } from "./otlp.ts";
import { DeliveryError, type OutgoingLine, type Receiver } from "./receiver.ts";

const compress = promisify(gzip);

/** Bytes of an answer that are read. */
const ANSWER_BYTES = 64 * 1024;

/** What says that this batch is never taken. Everything else may be another answer once the receiver or the drain is as it should be. */
const REFUSALS = new Set([400, 406, 411, 413, 414, 415, 422, 431]);

/** How often a batch that is too large is halved: to about 16 KiB of text. */
const HALVINGS = 4;

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
    this.#agent = new Agent({ keepAlive: true, maxSockets: 1, timeout: 60_000 });
  }

  send(lines: readonly OutgoingLine[], signal: AbortSignal): Promise<{ refused: number }> {
    return this.#send(lines, signal, HALVINGS);
  }

  async #send(
    lines: readonly OutgoingLine[],
    signal: AbortSignal,
    halvings: number,
  ): Promise<{ refused: number }> {
    const { status, retryAfter, body } = await this.#post(await compress(exportRequest(lines)), signal);
    if (status >= 200 && status < 300) {
      return { refused: Math.min(rejectedRecords(body), lines.length) };
    }
    if (status === 413 && lines.length > 1 && halvings > 0) {
      const middle = Math.ceil(lines.length / 2);
      const first = await this.#send(lines.slice(0, middle), signal, halvings - 1);
      const second = await this.#send(lines.slice(middle), signal, halvings - 1);
      return { refused: first.refused + second.refused };
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
    const { headers, tls } = this.#credentials;
    const options: RequestOptions = {
      ...{ method: "POST", agent: this.#agent, signal, path: this.#url.pathname, ...tls },
      headers: {
        ...headers,
        "content-type": "application/json",
        "content-encoding": "gzip",
        "content-length": body.length,
        "user-agent": "slipway",
      },
    };
    try {
      const { hostname, port } = this.#url;
      const address = receiverAddress(hostname, Number(port || 443), this.#options);
      return await exchange({ ...options, ...address }, body);
    } catch (error) {
      throw connectionFailure(error);
    }
  }
}

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
    // Without it Node closes the connection of such an answer, and reports neither a response nor an error.
    sent.on("upgrade", ({ statusCode: status = 0 }, socket) => {
      socket.destroy();
      resolve({ status, retryAfter: undefined, body: "" });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
