/** The end of a log that is followed while its container writes it. */

import type { Readable } from "node:stream";
import { MAX_LOG_BYTES } from "@slipway/ledger";
import { withoutKubeletMessage } from "../metrics/kubelet-messages.ts";
import { TailBuffer, tailText } from "./log-tail.ts";

/** After so many bytes reading is aborted: one container that writes so much must not delay the others. */
const MAX_BYTES = 16 * 1024 * 1024;

export class FollowedTail {
  /** Resolves once the container has ended, or reading has failed. Never rejects. */
  readonly ended: Promise<void>;
  /** Resolves with true once all requested lines were read and earlier ones are needed too, otherwise with false, at the end at the latest. */
  readonly needsEarlierLines: Promise<boolean>;
  readonly #tail = new TailBuffer(MAX_LOG_BYTES);
  /** Reading has failed or was aborted. */
  #failed = false;

  /**
   * @param body is read immediately
   * @param tailLines number of earlier lines that were requested
   */
  constructor(body: Readable, tailLines: number) {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.needsEarlierLines = promise;
    this.ended = this.#read(body, () => {
      if (this.#tail.lines >= tailLines) {
        resolve(this.#tail.total < MAX_LOG_BYTES);
      }
    }).finally(() => resolve(false));
  }

  /** Whether all was read, as far as is known. */
  get whole(): boolean {
    return !this.#failed && this.text() !== undefined;
  }

  /** What was read so far, at most 51,200 bytes; undefined when that is nothing that the container wrote. */
  text(): string | undefined {
    const all = tailText(this.#tail.bytes(), this.#tail.total > MAX_LOG_BYTES);
    const text = withoutKubeletMessage(all);
    return text === "" && (all !== "" || this.#failed) ? undefined : text;
  }

  /** Never rejects. */
  async #read(body: Readable, onChunk: () => void): Promise<void> {
    try {
      for await (const chunk of body as AsyncIterable<Buffer>) {
        this.#tail.push(chunk);
        onChunk();
        if (this.#tail.total <= MAX_BYTES) {
          continue;
        }
        this.#failed = true;
        return;
      }
    } catch {
      this.#failed = true;
    }
  }
}
