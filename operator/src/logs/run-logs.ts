/** Archives the end of a finished run's log, so that it outlives the pod. */

import { type KubeClient, KubeError, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { MAX_LOG_BYTES } from "@slipway/ledger";
import type { FollowedLog, RunLogSource, RunLogs } from "../jobs/runs/ports.ts";
import { isKubeletMessage } from "./kubelet-messages.ts";
import { FollowedEnd, readEnd } from "./log-request.ts";
import { tailText } from "./log-tail.ts";

/** Writes a log into the ledger; throws when it cannot. */
export type StoreRunLog = (run: RunLogSource, text: string) => Promise<void>;

export interface RunLogsOptions {
  client: Pick<KubeClient, "streamPodLog" | "getOrUndefined">;
  store: StoreRunLog;
}

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
async function readTail(
  client: RunLogsOptions["client"],
  run: RunLogSource,
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
  { namespace, podName }: RunLogSource,
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
