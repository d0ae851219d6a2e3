import {
  type KubeClient,
  KubeError,
  type KubernetesObject,
  type ObjectRef,
} from "@slipway/controller-runtime";
import { type LogLine, parseLog } from "./lines.ts";

interface ContainerState {
  running?: object;
  terminated?: object;
}

/** What of a pod decides whether there is a log to read. */
export interface Pod extends KubernetesObject {
  spec?: { containers?: { name: string }[] };
  status?: {
    containerStatuses?: {
      name: string;
      state?: ContainerState;
      lastState?: ContainerState;
      restartCount?: number;
    }[];
  };
}

/** The application's container; the platform may put others beside it. */
export const APP = "app";

/** How much to read of one instance. */
export interface ReadLimits {
  lines: number;
  /** Bytes of one request to the node. */
  bytes: number;
  /** Longest silence of the node, in milliseconds. */
  timeoutMs: number;
  signal: AbortSignal;
}

/** Bytes of the longest line as container runtimes write it: a longer one is split. */
const RUNTIME_LINE_BYTES = 16 * 1024;

/** One run of the application's container that has a log. */
export interface Run {
  container: string;
  /** The parameters of the request to the node. */
  previous: boolean;
  /** Which one it is: the container's first has 0. */
  number: number;
  /** Whether it may write more. */
  goesOn: boolean;
}

/** The runs of an instance whose logs its node still has, as far as the pod's status reports; oldest first. */
export function runsOf(pod: Pod): Run[] {
  const container =
    pod.spec?.containers?.find(({ name }) => name === APP)?.name ?? pod.spec?.containers?.[0]?.name;
  const status = pod.status?.containerStatuses?.find(({ name }) => name === container);
  if (container === undefined || status === undefined) {
    return [];
  }
  const { state, lastState, restartCount = 0 } = status;
  const ranBefore = lastState?.terminated !== undefined;
  const isRunning = state?.running !== undefined;
  if (!isRunning && !state?.terminated && !ranBefore) {
    return [];
  }
  // While the container waits for its restart, the node returns the log of the run that ended.
  const before =
    ranBefore && isRunning ? [{ container, previous: true, number: restartCount - 1, goesOn: false }] : [];
  return [...before, { container, previous: false, number: restartCount, goesOn: isRunning }];
}

/**
 * The newest lines of an instance. Of a container that crashed and runs again, those of its last run come before them.
 * Empty for an instance that has not started yet or is deleted.
 * @throws KubeError, or the reason of the signal, when its node does not answer
 */
export async function readInstanceLog(kube: KubeClient, pod: Pod, limits: ReadLimits): Promise<LogLine[]> {
  const logs = await Promise.all(runsOf(pod).map((run) => readRun(kube, pod, run, limits)));
  return logs.flat();
}

async function readRun(
  kube: KubeClient,
  { metadata }: Pod,
  { container, previous }: Run,
  limits: ReadLimits,
): Promise<LogLine[]> {
  const ref = { namespace: metadata?.namespace, name: metadata?.name ?? "" };
  const log = await readEnd(kube, ref, { container, ...(previous ? { previous } : {}) }, limits);
  return log === undefined ? [] : parseLog(log);
}

/**
 * The end of the log of one container's run, as the node returns it. The node cuts an answer that is too long at its end, where
 * the newest lines are: then fewer lines are requested, until they fit.
 * @returns undefined when there is none: the container has not started, or the pod is deleted
 * @throws KubeError, or the reason of the signal, when its node does not answer
 */
export async function readEnd(
  kube: KubeClient,
  ref: ObjectRef,
  which: { container: string; previous?: boolean },
  { lines, bytes, timeoutMs, signal }: ReadLimits,
): Promise<Buffer | undefined> {
  const certainToFit = Math.max(1, Math.floor(bytes / RUNTIME_LINE_BYTES) - 1);
  for (let tailLines = lines; ; tailLines = Math.max(certainToFit, Math.floor(tailLines / 4))) {
    let answer: Buffer;
    try {
      answer = await kube.podLog(ref, { ...which, tailLines, limitBytes: bytes, timeoutMs, signal });
    } catch (error) {
      // 400: not started, or no run before this one. 404: the pod is deleted.
      if (error instanceof KubeError && (error.status === 400 || error.status === 404)) {
        return undefined;
      }
      throw error;
    }
    if (answer.length < bytes || tailLines <= certainToFit) {
      return answer;
    }
  }
}
