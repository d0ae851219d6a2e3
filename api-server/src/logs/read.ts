import { type KubeClient, resources } from "@slipway/controller-runtime";
import { labels } from "@slipway/crds";
import type { Logger } from "pino";
import { mapConcurrently } from "../concurrency.ts";
import { failures } from "../errors/catalog.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { type Pod, readInstanceLog } from "./instance-log.ts";
import { type LogLine, newestLines } from "./lines.ts";

/** Lines of one answer, and their bytes. */
export const MAX_LINES = 1_000;
export const MAX_BYTES = 256 * 1024;

/** Instances that are read for one answer: the newest, of which so many concurrently. */
const MAX_INSTANCES = 50;
const MAX_CONCURRENT_READS = 5;
/** Bytes of one request to a node: a share of this total, but enough for a few of the longest lines. */
const BYTES_OF_ALL = 4 * 1024 * 1024;
const MIN_BYTES_PER_INSTANCE = 128 * 1024;
const MAX_BYTES_PER_INSTANCE = 1024 * 1024;
/** Timeouts of a node's answer, and of the whole read. */
const NODE_TIMEOUT_MS = 4_000;
const TOTAL_TIMEOUT_MS = 10_000;

export interface ProjectLog {
  /** Oldest first. */
  lines: string[];
  /** Names of the project's instances; only the requested one where the query names one. */
  instances: string[];
  /** Those of them whose node did not answer. */
  unavailable: string[];
}

/** How long reading may take; tests use less. */
export interface ReadTimeouts {
  nodeTimeoutMs: number;
  totalTimeoutMs: number;
}

/**
 * What a project's instances wrote last, merged by time. Only pods that carry the project's label in its organization's
 * namespace are read.
 * @throws Failure 404 for an instance that is not the project's, 503 when no node answers
 */
export async function readLog(
  kube: KubeClient,
  logger: Logger,
  project: ApiProject,
  instance: string | undefined,
  timeouts?: ReadTimeouts,
): Promise<ProjectLog> {
  const { logs, pods, unavailable } = await readInstances(kube, logger, project, instance, timeouts);
  const lines = newestLines(logs, { maxLines: MAX_LINES, maxBytes: MAX_BYTES });
  return { lines: lines.map(({ text }) => text), instances: pods.map(nameOf), unavailable };
}

/** What was read of each instance. */
export interface InstanceLogs {
  pods: Pod[];
  /** In the order of the pods. */
  logs: LogLine[][];
  /** Names of those whose node did not answer. */
  unavailable: string[];
}

/** The same, by instance. @throws Failure likewise */
export async function readInstances(
  kube: KubeClient,
  logger: Logger,
  project: ApiProject,
  instance: string | undefined,
  { nodeTimeoutMs, totalTimeoutMs }: ReadTimeouts = {
    nodeTimeoutMs: NODE_TIMEOUT_MS,
    totalTimeoutMs: TOTAL_TIMEOUT_MS,
  },
): Promise<InstanceLogs> {
  const signal = AbortSignal.timeout(totalTimeoutMs);
  const { spec } = project.resource;
  // Pausing a job leaves the run alone that is active.
  const paused = spec.paused === true && spec.type !== "job";
  const pods = paused ? [] : await listInstances(kube, project, signal);
  const wanted = instance === undefined ? pods : pods.filter(({ metadata }) => metadata?.name === instance);
  if (instance !== undefined && wanted.length === 0) {
    throw failures.instanceNotFound(instance);
  }

  const share = Math.floor(BYTES_OF_ALL / Math.max(1, wanted.length));
  const limits = {
    lines: MAX_LINES,
    bytes: Math.min(MAX_BYTES_PER_INSTANCE, Math.max(MIN_BYTES_PER_INSTANCE, share)),
    timeoutMs: nodeTimeoutMs,
    signal,
  };
  const unavailable: string[] = [];
  const readOne = async (pod: Pod): Promise<LogLine[]> => {
    try {
      return await readInstanceLog(kube, pod, limits);
    } catch (error) {
      unavailable.push(nameOf(pod));
      logger.warn({ err: error, project: project.id, instance: nameOf(pod) }, "log cannot be read");
      return [];
    }
  };
  const logs = await mapConcurrently(wanted, MAX_CONCURRENT_READS, readOne);
  if (wanted.length > 0 && unavailable.length === wanted.length) {
    throw failures.logsUnavailable();
  }
  return { pods: wanted, logs, unavailable };
}

/** The project's pods, newest first. @throws Failure 503 */
export async function listInstances(
  kube: KubeClient,
  { id, resource }: ApiProject,
  signal: AbortSignal,
): Promise<Pod[]> {
  try {
    const pods = await kube.listAll<Pod>(resources.pods, {
      namespace: resource.metadata.namespace,
      labelSelector: `${labels.project}=${id}`,
      signal,
    });
    const age = ({ metadata }: Pod) => String(metadata?.creationTimestamp ?? "");
    return pods.sort((a, b) => (age(a) < age(b) ? 1 : -1)).slice(0, MAX_INSTANCES);
  } catch (error) {
    throw failures.clusterUnavailable(error);
  }
}

export const nameOf = (pod: Pod): string => pod.metadata?.name ?? "";
