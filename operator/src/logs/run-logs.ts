/** Archives the end of a finished run's log, so that it outlives the pod. */

import { type KubeClient, KubeError, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { MAX_LOG_BYTES } from "@slipway/ledger";
import type { FollowedLog, RunLogSource, RunLogs } from "../jobs/runs/ports.ts";
import { isKubeletMessage } from "./kubelet-messages.ts";
import { FollowedTail, TailBuffer, tailText } from "./log-tail.ts";

/** Writes a log into the ledger; throws when it cannot. */
export type StoreRunLog = (run: RunLogSource, text: string) => Promise<void>;

export interface RunLogsOptions {
  client: Pick<KubeClient, "streamPodLog" | "getOrUndefined">;
  store: StoreRunLog;
}

/** The pod whose log is read. */
type PodRef = Pick<RunLogSource, "namespace" | "podName">;

/** Longest read in all, in milliseconds. */
const READ_MS = 20_000;

/** The port of the jobrun controller, on the apiserver and the ledger. */
export function createRunLogs({ client, store }: RunLogsOptions): RunLogs {
  return {
    /**
     * Reads the end of a run's log and stores it.
     * @returns `unavailable` when the log cannot exist any more: its pod or its node does not exist, the container never
     *   started, or its node has removed it
     * @throws KubeError, or what the ledger throws: to be tried again
     */
    async archive(run, signal) {
      const text = await readTail(client, run, signal);
      if (text === undefined) {
        return "unavailable";
      }
      await store(run, text);
      return "stored";
    },

    /**
     * Opens a run's log to be read while its container still writes.
     * @throws KubeError when it cannot be opened
     */
    async follow(run, signal): Promise<FollowedLog> {
      const log = await FollowedEnd.open(client, run, signal);
      return {
        ended: log.ended,
        async store() {
          const text = log.text();
          if (text === undefined) {
            return "unavailable";
          }
          await store(run, text);
          return "stored";
        },
      };
    },
  };
}

/**
 * The last 51,200 bytes of a container's log as UTF-8 text; undefined when it cannot exist any more.
 * @throws KubeError when that is not known now
 */
export async function readTail(
  client: RunLogsOptions["client"],
  run: PodRef,
  signal: AbortSignal,
): Promise<string | undefined> {
  const until = AbortSignal.any([signal, AbortSignal.timeout(READ_MS)]);
  try {
    const tail = await readEnd(client, run, until);
    // Lines before the requested ones end with a whole character.
    const text = tailText(tail.bytes(), tail.total > MAX_LOG_BYTES);
    if (isKubeletMessage(text)) {
      throw new KubeError({ status: 0, reason: NO_LOG, message: text });
    }
    return text;
  } catch (error) {
    if (await isLogLost(client, run, error, signal)) {
      return undefined;
    }
    throw error;
  }
}

/** Reason of the error for a kubelet's answer of 200 that it has no log. */
const NO_LOG = "NoLog";

/**
 * Whether a retry cannot help. 400 is a container that never started. 404 is the answer of the apiserver for a pod or node that
 * does not exist, but also of a kubelet that has just started and does not know its pods yet: so both are looked up. A kubelet
 * answers that it has no log when it has removed it, as it does once a deleted or evicted pod has ended, but also while its
 * runtime is being restarted.
 */
async function isLogLost(
  client: RunLogsOptions["client"],
  { namespace, podName }: PodRef,
  error: unknown,
  signal: AbortSignal,
): Promise<boolean> {
  if (!(error instanceof KubeError)) {
    return false;
  }
  if (error.status === 400) {
    return true;
  }
  if (error.status !== 404 && error.reason !== NO_LOG) {
    return false;
  }
  const pod = await client.getOrUndefined<PodOnNode>(
    resources.pods,
    { namespace, name: podName },
    { signal },
  );
  const nodeName = pod?.spec?.nodeName;
  if (pod === undefined || nodeName === undefined) {
    return true;
  }
  if (error.reason === NO_LOG) {
    return pod.metadata?.deletionTimestamp !== undefined || pod.status?.reason === "Evicted";
  }
  return (await client.getOrUndefined(resources.nodes, { name: nodeName }, { signal })) === undefined;
}

type PodOnNode = KubernetesObject & { spec?: { nodeName?: string }; status?: { reason?: string } };

// Requests to the apiserver for the log of a run's container.

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
export async function readEnd(client: LogClient, run: PodRef, signal: AbortSignal): Promise<TailBuffer> {
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
  run: PodRef,
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

const podOf = ({ namespace, podName }: PodRef) => ({ namespace, name: podName });
