import { formatDecimal, type JobRunStatus, parseDecimal } from "@slipway/crds";
import type { FoundRun } from "./read.ts";
import { isTerminal, jsonDecimal } from "./run.ts";

type Measured = NonNullable<JobRunStatus["metrics"]>;
type Values = Record<string, unknown>;

/**
 * CPU and memory of a run, as `/v1` shows them. Pure. What is not known is absent, never zero: `collecting` until the
 * run has ended and its last sample is in, then `available`, or `unavailable` when nothing could be measured.
 */
export function runMetrics({ run, resource, row }: FoundRun) {
  const measured = resource?.status?.metrics ?? row?.metrics ?? undefined;
  const status = statusOf({ run, resource, measured });
  const collecting = status === "collecting";
  const known: Partial<Measured> = (status !== "unavailable" && measured) || {};
  const latest = <T>(value: T): T | undefined => (collecting ? value : undefined);
  const cpu = present({
    average_cores: decimal(known.averageCores),
    peak_cores: decimal(known.peakCores),
    latest_cores: decimal(latest(known.latestCores)),
  });
  const memory = present({
    average_bytes: bytes(known.averageBytes),
    peak_bytes: bytes(known.peakBytes),
    latest_bytes: bytes(latest(known.latestBytes)),
  });
  const sampledAt = latest(known.sampledAt);
  return {
    run_id: run.id,
    status,
    window: {
      started_at: run.startedAt.toISOString(),
      ...present({ finished_at: run.finishedAt?.toISOString() }),
    },
    ...(Object.keys(cpu).length === 0 ? {} : { cpu }),
    ...(Object.keys(memory).length === 0 ? {} : { memory }),
    ...present({ samples: known.samples, sampled_at: sampledAt && new Date(sampledAt).toISOString() }),
  };
}

function statusOf({
  run,
  resource,
  measured,
}: Pick<FoundRun, "run" | "resource"> & { measured: Measured | undefined }): Measured["status"] {
  if (!isTerminal(run.status)) {
    return "collecting";
  }
  if (measured && measured.status !== "collecting") {
    return measured.status;
  }
  // The operator writes the final values together with the charge.
  const isOpen = resource !== undefined && resource.status?.chargedAt === undefined;
  return isOpen ? "collecting" : "unavailable";
}

const present = (values: Values): Values =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

const decimal = (text: string | undefined): unknown => (text === undefined ? undefined : jsonDecimal(text));

/** Whole bytes: an average may be a fraction. */
function bytes(text: string | undefined): unknown {
  if (text === undefined) {
    return undefined;
  }
  const [whole = "0"] = formatDecimal(parseDecimal(text)).split(".");
  return jsonDecimal(whole);
}
