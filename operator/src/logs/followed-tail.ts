/** The end of a log that is read while its container still writes it. */

import type { Readable } from "node:stream";
import { MAX_LOG_BYTES } from "@slipway/ledger";
import { withoutKubeletMessage } from "../metrics/kubelet-messages.ts";
import { TailBuffer, tailText } from "./log-tail.ts";

/** After so many bytes it is broken off: whoever writes that much must not keep everybody else from being read. */
const MOST_BYTES = 16 * 1024 * 1024;

export class FollowedTail {
  /** Settles once nothing more comes: the container has ended, or the reading broke off. Never rejects. */
  readonly ended: Promise<void>;
  /** Settles once so many lines have come that those before them may be wanted, too: with false when they are not, or by the end. */
  readonly wantsMore: Promise<boolean>;
  readonly #tail = new TailBuffer(MAX_LOG_BYTES);
  /** The reading broke off. */
  #broke = false;

  /**
   * @param body is read from now on
   * @param tailLines that were asked for from before
   */
  constructor(body: Readable, tailLines: number) {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.wantsMore = promise;
    this.ended = this.#read(body, () => {
      if (this.#tail.lines >= tailLines) {
        resolve(this.#tail.total < MAX_LOG_BYTES);
      }
    }).finally(() => resolve(false));
  }

  /** Whether all was read, as far as can be told. */
  get whole(): boolean {
    return !this.#broke && this.text() !== undefined;
  }

  /** What was read so far, at most 51,200 bytes; undefined when that is nothing that the container wrote. */
  text(): string | undefined {
    const all = tailText(this.#tail.bytes(), this.#tail.total > MAX_LOG_BYTES);
    const text = withoutKubeletMessage(all);
    return text === "" && (all !== "" || this.#broke) ? undefined : text;
  }

  /** Never rejects. */
  async #read(body: Readable, onChunk: () => void): Promise<void> {
    try {
      for await (const chunk of body as AsyncIterable<Buffer>) {
        this.#tail.push(chunk);
        onChunk();
        if (this.#tail.total <= MOST_BYTES) {
          continue;
        }
        this.#broke = true;
        return;
      }
    } catch {
      this.#broke = true;
    }
  }
}
