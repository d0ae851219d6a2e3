/** Requests to the apiserver for the log of a run's container. */

import { type KubeClient, KubeError } from "@slipway/controller-runtime";
import { MAX_LOG_BYTES } from "@slipway/ledger";
import type { RunLogSource } from "../jobs/runs/ports.ts";
import { FollowedTail, TailBuffer } from "./log-tail.ts";

export type LogClient = Pick<KubeClient, "streamPodLog">;

const CONTAINER = "app";
/** Lines that are requested first: enough of usual length. */
const FIRST_LINES = 512;
/** The shortest line is a line feed alone, so that many always contain enough bytes. */
const MAX_LINES = MAX_LOG_BYTES;
/** Longest silence of a node, in milliseconds. */
const SILENCE_MS = 10_000;
/** Within which a followed log must open. */
const OPEN_MS = 5_000;

/** Reads the end of a log, in two requests when lines are short. @throws KubeError */
export async function readEnd(
  client: LogClient,
  run: RunLogSource,
  signal: AbortSignal,
): Promise<TailBuffer> {
  const tail = await readLines(client, run, FIRST_LINES, signal);
  if (tail.total >= MAX_LOG_BYTES || tail.lines < FIRST_LINES) {
    return tail;
  }
  return await readLines(client, run, MAX_LINES, signal);
}

/** The end of a log that is followed while its container writes. */
export class FollowedEnd {
  /** Resolves once nothing more is read. Never rejects. */
  readonly ended: Promise<void>;
  readonly #first: FollowedTail;
  /** Starts further back, when lines are short. */
  #earlier: FollowedTail | undefined;

  /** Opens it. @throws KubeError */
  static async open(client: LogClient, run: RunLogSource, signal: AbortSignal): Promise<FollowedEnd> {
    const options = (tailLines: number) => ({
      container: CONTAINER,
      tailLines,
      follow: true,
      timeoutMs: OPEN_MS,
      signal,
    });
    const follow = async (tailLines: number) =>
      new FollowedTail(await client.streamPodLog(podOf(run), options(tailLines)), tailLines);
    return new FollowedEnd(await follow(FIRST_LINES), () => follow(MAX_LINES));
  }

  private constructor(first: FollowedTail, follow: () => Promise<FollowedTail>) {
    this.#first = first;
    this.ended = this.#readEarlier(follow);
  }

  /** What was read so far, at most 51,200 bytes; undefined when that is nothing that the container wrote. */
  text(): string | undefined {
    const earlier = this.#earlier;
    return earlier?.whole ? earlier.text() : (this.#first.text() ?? earlier?.text());
  }

  /** The first request answers soon, and the second may be too late: so both continue. */
  async #readEarlier(follow: () => Promise<FollowedTail>): Promise<void> {
    if (await this.#first.needsEarlierLines) {
      this.#earlier = await follow().catch(() => undefined);
      await this.#earlier?.ended;
    }
    await this.#first.ended;
  }
}

/** The kubelet seeks the last lines from the file's end; not more than the limit is in memory. */
async function readLines(
  client: LogClient,
  run: RunLogSource,
  tailLines: number,
  signal: AbortSignal,
): Promise<TailBuffer> {
  const options = { container: CONTAINER, tailLines, timeoutMs: SILENCE_MS, bounded: true, signal };
  const body = await client.streamPodLog(podOf(run), options);
  const tail = new TailBuffer(MAX_LOG_BYTES);
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      tail.push(chunk);
    }
  } catch (error) {
    if (signal.aborted) {
      throw signal.reason;
    }
    throw new KubeError({
      status: 0,
      reason: "NetworkError",
      message: `the log of pod ${run.podName} broke off`,
      cause: error,
    });
  }
  return tail;
}

const podOf = ({ namespace, podName }: RunLogSource) => ({ namespace, name: podName });
