import { KubeError } from "@slipway/controller-runtime";
import { billingCycle } from "@slipway/crds";
import { endOfLog, MAX_LOG_BYTES, readJobRunLog } from "@slipway/ledger";
import { failures } from "../errors/catalog.ts";
import { withLedgerErrors } from "../ledger/availability.ts";
import { APP, readEnd } from "../logs/instance-log.ts";
import { parseLog } from "../logs/lines.ts";
import { MAX_LINES } from "../logs/read.ts";
import type { ApiProject } from "../projects/api-project.ts";
import type { Services } from "../services.ts";
import type { FoundRun } from "./read.ts";

/** The shortest line is its end alone: so many reach far enough. The node writes a time of 31 bytes or so before each. */
const LINES = MAX_LOG_BYTES;
const NODE_BYTES = 2 * 1024 * 1024;
/** Milliseconds of a node's silence, and of the whole. */
const NODE_TIMEOUT_MS = 4_000;
const WHOLE_TIMEOUT_MS = 10_000;

/** A run whose log is read. */
type LoggedRun = Pick<FoundRun, "resource"> & { run: Pick<FoundRun["run"], "id"> };

type LogServices = Pick<Services, "kube" | "ledger" | "logger">;

/**
 * The end of what a run wrote, at most 50 KiB of UTF-8: from its node while it runs and until it is stored, then from the
 * ledger. Empty when nothing was written or nothing could be kept.
 * @throws Failure 503 when its node does not answer or has removed it and it is not stored yet, or the ledger is unavailable
 */
export async function readRunLog(
  project: ApiProject,
  found: LoggedRun,
  services: LogServices,
): Promise<string> {
  const live = await readLive(found, services);
  if (live !== undefined && live !== "silent") {
    return live;
  }
  const { organizationId, id: projectId } = project;
  const key = { organizationId, projectId, id: found.run.id };
  const stored = await withLedgerErrors(() => readJobRunLog(services.ledger, key));
  if (stored === undefined && live === "silent") {
    throw failures.logsUnavailable();
  }
  return endOfLog(stored ?? "");
}

/**
 * Lines of the job's last run, as far as they are kept and of the current billing cycle: the log of a job between its runs,
 * when no pod is left.
 * @throws Failure 503 when the ledger is unavailable
 */
export async function lastRunLines(
  { organizationId, id: projectId, resource }: ApiProject,
  { ledger, now }: Pick<Services, "ledger" | "now">,
): Promise<string[]> {
  const last = resource.status?.job?.lastRun;
  const { startedAt: cycleStart } = billingCycle(now());
  if (last?.startedAt === undefined || new Date(last.startedAt) < cycleStart) {
    return [];
  }
  const key = { organizationId, projectId, id: last.name };
  const log = await withLedgerErrors(() => readJobRunLog(ledger, key));
  const lines = (log ?? "").split("\n");
  if (lines.at(-1) === "") {
    lines.pop();
  }
  return lines.slice(-MAX_LINES);
}

/** Undefined when no node can return it; `silent` also for a node that answers only that it has no log any more. */
async function readLive(
  { run, resource }: LoggedRun,
  { kube, logger }: LogServices,
): Promise<string | "silent" | undefined> {
  const { podName, logs } = resource?.status ?? {};
  if (resource === undefined || podName === undefined || logs !== undefined) {
    return undefined;
  }
  const limits = {
    lines: LINES,
    bytes: NODE_BYTES,
    timeoutMs: NODE_TIMEOUT_MS,
    signal: AbortSignal.timeout(WHOLE_TIMEOUT_MS),
  };
  const ref = { namespace: resource.metadata.namespace, name: podName };
  try {
    const log = await readEnd(kube, ref, { container: APP }, limits);
    const text = log && textOf(log);
    return text === "" && log !== undefined && log.length > 0 ? "silent" : text;
  } catch (error) {
    if (!(error instanceof KubeError) && !limits.signal.aborted) {
      throw error;
    }
    logger.warn({ err: error, run: run.id }, "log cannot be read");
    return "silent";
  }
}

/** The lines without the node's times, the end of them; the last one may not have ended. Pure. */
export function textOf(log: Buffer): string {
  const lines = parseLog(log, Number.POSITIVE_INFINITY).map(({ text }) => text);
  const isWhole = log.at(-1) === 0x0a;
  return endOfLog(lines.join("\n") + (isWhole && lines.length > 0 ? "\n" : ""));
}
