import { type InstanceHistory, metricHistory, RETENTION_DAYS, sampledInstances } from "@slipway/analytics";
import { z } from "zod";
import type { Analytics } from "../analytics/analytics.ts";
import { wholeNumber } from "../http/validate.ts";
import type { ApiProject } from "../projects/api-project.ts";

/** What a project's instances used over time: which window, in which steps, of how many instances. */

const MOST_RANGE_SECONDS = RETENTION_DAYS * 86_400;
/** Steps of one instance, instances with steps, and names of others, in one answer: about a megabyte at the most. */
const MOST_POINTS = 500;
const MOST_INSTANCES = 10;
const MOST_NAMED = 100;
/** Steps that are chosen where none is requested: none is shorter than the time between two samples. */
const STEPS = [60, 120, 300, 600, 900, 1_800, 3_600];

/** The begun steps at both ends of a range are whole ones. */
const mostSteps = (range: number, step: number): number => Math.ceil(range / step) + 1;

export const historyQuery = z
  .strictObject({
    instance: z
      .string()
      .min(1)
      .max(253)
      .describe("Name of an instance; of a database the one that takes writes by default.")
      .optional(),
    range_seconds: wholeNumber(60, MOST_RANGE_SECONDS)
      .describe(
        `Seconds of the history, which ends now and begins with the step that the range begins in; at most ${RETENTION_DAYS} days. None without it.`,
      )
      .optional(),
    resolution_seconds: wholeNumber(15, 86_400)
      .describe(
        `Seconds of each step, of which there are at most ${MOST_POINTS}: a length that fits without it. Steps below a minute may have no sample. Needs range_seconds.`,
      )
      .optional(),
  })
  .refine(({ range_seconds: range, resolution_seconds: step }) => step === undefined || range !== undefined, {
    path: ["range_seconds"],
    message: "range_seconds is required with resolution_seconds",
  })
  .refine(
    ({ range_seconds: range = 0, resolution_seconds: step = range }) =>
      range === 0 || mostSteps(range, step) <= MOST_POINTS,
    {
      path: ["resolution_seconds"],
      message: `must be at least range_seconds / ${MOST_POINTS - 1}`,
    },
  )
  .refine(({ range_seconds: range, resolution_seconds: step }) => (step ?? 0) <= (range ?? 86_400), {
    path: ["resolution_seconds"],
    message: "must be at most range_seconds",
  });

type HistoryQuery = z.output<typeof historyQuery>;

/** Seconds since the epoch, multiples of the step. */
interface HistoryWindow {
  from: number;
  to: number;
  stepSeconds: number;
}

/** The steps that the range touches, up to the one that has begun. Undefined where no range is requested. Pure. */
export function historyWindow(
  { range_seconds: range, resolution_seconds: requested }: HistoryQuery,
  now: Date,
): HistoryWindow | undefined {
  if (range === undefined) {
    return undefined;
  }
  const fitting = STEPS.find((step) => mostSteps(range, step) <= MOST_POINTS) ?? 3_600;
  const stepSeconds = requested ?? Math.min(fitting, range);
  const end = now.getTime() / 1000;
  const beginOf = (moment: number) => Math.floor(moment / stepSeconds) * stepSeconds;
  return { from: beginOf(end - range), to: beginOf(end) + stepSeconds, stepSeconds };
}

const value = (about: string) => z.number().min(0).nullable().describe(about);
const bytes = (about: string) => z.int().min(0).nullable().describe(about);

const point = z.strictObject({
  at: z.string().describe("First moment of the step."),
  cpu: value("Cores; the mean."),
  memory: bytes("Bytes; the most of the step's samples."),
  received_bytes_per_second: value("Of the instance's network; the mean."),
  transmitted_bytes_per_second: value("The same."),
  restarts: z.int().min(0).nullable().describe("Restarts of the container since the instance began."),
  volume_used_bytes: bytes("Of the project's volume; null without one."),
  volume_capacity_bytes: bytes("The same."),
});

export const historySchema = z.strictObject({
  from: z.string().describe("First moment of the first step."),
  to: z.string().describe("First moment after the last step, which may be incomplete."),
  resolution_seconds: z.int().min(15),
  instances: z
    .array(
      z.strictObject({
        instance: z.string(),
        points: z
          .array(point)
          .max(MOST_POINTS)
          .describe("Steps of which something is known; others are gaps. Null is unknown, never zero."),
      }),
    )
    .max(MOST_INSTANCES)
    .describe("Those that were sampled last, also those that are gone."),
  other_instances: z
    .array(z.string())
    .max(MOST_NAMED)
    .describe("Names of others with samples in this time: `instance` has their history."),
  omitted_instances: z
    .int()
    .min(0)
    .describe("How many have samples in this time and are not in `instances`."),
});

export type History = z.output<typeof historySchema>;

/**
 * The history of a project's instances, or of one of them.
 * @param signal cancels it
 * @throws Failure 503 as `Analytics.history`
 */
export function readHistory(
  analytics: Pick<Analytics, "history">,
  { organizationId: organization, id: project }: Pick<ApiProject, "organizationId" | "id">,
  { instance, ...window }: HistoryWindow & { instance: string | undefined },
  signal: AbortSignal,
): Promise<History> {
  return analytics.history(organization, signal, async (store, within) => {
    const selection = { organization, project, ...window };
    const { instances, total } =
      instance === undefined
        ? await sampledInstances(store, selection, MOST_INSTANCES + MOST_NAMED, within)
        : { instances: [instance], total: 1 };
    const shown = instances.slice(0, MOST_INSTANCES);
    const found = await metricHistory(store, { ...selection, instances: shown }, within);
    return {
      from: isoOf(window.from),
      to: isoOf(window.to),
      resolution_seconds: window.stepSeconds,
      instances: found.map(view),
      other_instances: instances.slice(MOST_INSTANCES),
      omitted_instances: total - shown.length,
    };
  });
}

const isoOf = (seconds: number): string => new Date(seconds * 1000).toISOString();

const view = ({ instance, points }: InstanceHistory): History["instances"][number] => ({
  instance,
  points: points.map((one) => ({
    at: isoOf(one.at),
    cpu: rounded(one.cpuCores, 1e6),
    memory: one.memoryBytes,
    received_bytes_per_second: rounded(one.receivedBytesPerSecond, 10),
    transmitted_bytes_per_second: rounded(one.transmittedBytesPerSecond, 10),
    restarts: one.restarts,
    volume_used_bytes: one.volumeUsedBytes,
    volume_capacity_bytes: one.volumeCapacityBytes,
  })),
});

const rounded = (number: number | null, parts: number): number | null =>
  number === null ? null : Math.round(number * parts) / parts;
