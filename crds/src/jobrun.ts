import { z } from "zod";
import { conditions } from "./conditions.ts";
import {
  decimal,
  imageStatus,
  integer,
  objectName,
  observedGeneration,
  planId,
  text,
  timestamp,
} from "./fields.ts";
import type { Resource } from "./metadata.ts";
import { COMMAND_MAX_BYTES, celCommandShort, isCommandShort, words } from "./project/words.ts";
import { type Rule, type TransitionRule, withRules } from "./rule.ts";

/** Condition types of a JobRun. */
export const jobRunConditions = {
  /** Positive: the run has the project's slot and its pod may start. False once it has been refused, for good. */
  Admitted: "Admitted",
  /** Positive: the container ran and has ended, whatever its exit code. */
  Finished: "Finished",
  /** Positive: the charge is in the ledger and was read back; only then the finalizers are removed. */
  Charged: "Charged",
  /** Neutral: True from the first cancellation request until the run has ended. */
  Cancelling: "Cancelling",
  /** Negative: the end of the process could not be confirmed now, so the run cannot be cancelled. */
  CancelUnsafe: "CancelUnsafe",
} as const;
export type JobRunCondition = keyof typeof jobRunConditions;

/** Reasons of a JobRun's conditions. */
export const jobRunReasons = {
  Admitted: "Admitted",
  // Refused; those of missed occurrences as well, see missedReasons
  Overlap: "Overlap",
  Late: "Late",
  NotCreated: "NotCreated",
  OperatorUnavailable: "OperatorUnavailable",
  NotAccepted: "NotAccepted",
  Paused: "Paused",
  ScheduleClosed: "ScheduleClosed",
  ProjectGone: "ProjectGone",
  // Refused, one-off runs alone
  NotDeployed: "NotDeployed",
  TooManyRuns: "TooManyRuns",
  Running: "Running",
  Succeeded: "Succeeded",
  Failed: "Failed",
  DeadlineExceeded: "DeadlineExceeded",
  Cancelled: "Cancelled",
  NeverStarted: "NeverStarted",
  ChargePending: "ChargePending",
  ChargeRecorded: "ChargeRecorded",
  NothingToCharge: "NothingToCharge",
  CancelRequested: "CancelRequested",
  NodeUnreachable: "NodeUnreachable",
  ChargeDiffers: "ChargeDiffers",
  ChargeRefused: "ChargeRefused",
} as const;
export type JobRunReason = keyof typeof jobRunReasons;
/** What conditions of a JobRun may say. */
export interface JobRunConditionCatalog {
  type: JobRunCondition;
  reason: JobRunReason;
}

/** States of a run. Empty status means: admitted, its container has not started yet. */
export const jobRunPhases = ["running", "succeeded", "failed", "deadline_exceeded", "cancelled"] as const;
export type JobRunPhase = (typeof jobRunPhases)[number];

/** Types of projects whose image can run a command once: applications serve with theirs, jobs run theirs already. */
export const oneOffTypes = ["http", "worker"] as const;

/** Most seconds that a one-off run may have; the platform may allow fewer. */
export const ONE_OFF_TIMEOUT_MAX_SECONDS = 3_600;
/** One-off runs of a project, of one whose plan costs nothing, and of an organization that may be active concurrently. */
export const ONE_OFF_ACTIVE_MAX = { project: 5, freeProject: 1, organization: 20 } as const;
/** How many a project may have. @param plan undefined when it is not known */
export const oneOffLimit = (plan: { free: boolean } | undefined): number =>
  plan?.free ? ONE_OFF_ACTIVE_MAX.freeProject : ONE_OFF_ACTIVE_MAX.project;

export const oneOffCommand = words(
  `Runs once, without a shell, in the image that an application serves with now, with its variables and beside its instances. It has no volume. At most ${COMMAND_MAX_BYTES} bytes of UTF-8 in all. All who may read the project are shown it: secrets are to be variables.`,
).min(1);

export const oneOffTimeoutSeconds = integer(
  10,
  ONE_OFF_TIMEOUT_MAX_SECONDS,
  `Time from its container's start after which a one-off run is stopped; ${ONE_OFF_TIMEOUT_MAX_SECONDS}, or as much as the platform allows, unless given.`,
);

const fields = z
  .strictObject({
    projectRef: z
      .strictObject({ name: objectName("Id of the project.") })
      .describe("The job that runs, or the application whose image does."),
    trigger: z.enum(["schedule", "manual"]).describe("What asked for the run."),
    scheduledAt: timestamp("Minute for which the run was scheduled, or when it was asked for."),
    cancelRequestedAt: timestamp(
      "When cancelling was asked for first. It ends the billing and cannot be moved.",
    ).optional(),
    command: oneOffCommand.optional(),
    timeoutSeconds: oneOffTimeoutSeconds.optional(),
  })
  .describe(
    "One run of a scheduled job, or with a command a one-off run of an application. The operator makes it for an occurrence of the schedule; a client that wants a run now creates it with trigger manual. Nothing in it changes but a cancellation. Its Job has its name.",
  );
export type JobRunSpec = z.output<typeof fields>;

const rules: Rule<JobRunSpec>[] = [
  {
    cel: "!has(self.command) || self.trigger == 'manual'",
    check: ({ command, trigger }) => command === undefined || trigger === "manual",
    message: "{command} is for runs with trigger manual",
    fields: ["command", "trigger"],
  },
  {
    cel: `!has(self.command) || ${celCommandShort("command")}`,
    check: ({ command = [] }) => isCommandShort(command),
    message: `{command} must be at most ${COMMAND_MAX_BYTES} bytes of UTF-8 in all`,
    fields: ["command"],
  },
  {
    cel: "!has(self.timeoutSeconds) || has(self.command)",
    check: ({ command, timeoutSeconds }) => timeoutSeconds === undefined || command !== undefined,
    message: "{command} is required with {timeoutSeconds}",
    fields: ["command", "timeoutSeconds"],
  },
];

const fixed = ["projectRef", "trigger", "scheduledAt"] as const;
const fixedIfAny = ["command", "timeoutSeconds"] as const;

const transitions: TransitionRule<JobRunSpec>[] = [
  ...fixed.map((field) => ({
    cel: `self.${field} == oldSelf.${field}`,
    check: (self: JobRunSpec, old: JobRunSpec) => JSON.stringify(self[field]) === JSON.stringify(old[field]),
    message: `{${field}} cannot be changed`,
    fields: [field],
  })),
  ...fixedIfAny.map((field) => ({
    cel: `!has(self.${field}) || (has(oldSelf.${field}) && self.${field} == oldSelf.${field})`,
    check: (self: JobRunSpec, old: JobRunSpec) =>
      self[field] === undefined || JSON.stringify(self[field]) === JSON.stringify(old[field]),
    message: `{${field}} cannot be changed`,
    fields: [field],
  })),
  ...fixedIfAny.map((field) => ({
    cel: `!has(oldSelf.${field}) || has(self.${field})`,
    check: (self: JobRunSpec, old: JobRunSpec) => old[field] === undefined || self[field] !== undefined,
    message: `{${field}} cannot be removed`,
    fields: [field],
  })),
  {
    cel: "!has(oldSelf.cancelRequestedAt) || (has(self.cancelRequestedAt) && self.cancelRequestedAt == oldSelf.cancelRequestedAt)",
    check: (self, old) =>
      old.cancelRequestedAt === undefined || self.cancelRequestedAt === old.cancelRequestedAt,
    message: "{cancelRequestedAt} cannot be changed once it is set",
    fields: ["cancelRequestedAt"],
  },
];

export const jobRunSpec = withRules(fields, rules, transitions);

const sample = (unit: string, about: string) => text(1, 40, `${about}, in ${unit}, as a decimal.`).optional();

export const jobRunStatus = z
  .strictObject({
    observedGeneration: observedGeneration("Generation that this is about."),
    phase: z
      .enum(jobRunPhases)
      .describe("State of the run; absent until its container has started.")
      .optional(),
    conditions: conditions.optional(),
    admittedAt: timestamp("When the run was admitted: from then on its pod may start.").optional(),
    plan: planId.describe("Plan that the run is billed on.").optional(),
    deployment: text(1, 64, "Id of the deployment whose image and variables a one-off run has.").optional(),
    image: imageStatus.optional(),
    pricePerMinute: decimal(
      "Price of a minute in BRL cents; a run keeps the price it was admitted at.",
    ).optional(),
    startedAt: timestamp("When the container started.").optional(),
    finishedAt: timestamp("When the container ended.").optional(),
    lastObservedRunningAt: timestamp(
      "When the container was last seen running; at most 30 s old while it runs.",
    ).optional(),
    cancelEffectiveAt: timestamp(
      "From when on the cancelled run is not billed: cancelRequestedAt, but not before the run was last observed without that request, and not in the future.",
    ).optional(),
    billedUntil: timestamp("Moment up to which the run is billed.").optional(),
    billedMinutes: z
      .int()
      .min(1)
      .max(60)
      .meta({ description: "Minutes charged.", format: "int32" })
      .optional(),
    amount: decimal("Charge in BRL cents, exact.").optional(),
    chargedAt: timestamp("When the charge was read back from the ledger.").optional(),
    jobUid: text(1, 64, "UID of the Job.").optional(),
    podName: text(1, 253, "Name of the Pod.").optional(),
    podUid: text(1, 64, "UID of the Pod.").optional(),
    nodeName: text(1, 253, "Node of the Pod.").optional(),
    exitCode: z
      .int()
      .min(0)
      .max(255)
      .meta({ description: "Exit code; /v1 shows that of a one-off run alone.", format: "int32" })
      .optional(),
    endReason: text(
      1,
      64,
      "Why the container ended, as the runtime says: Completed, Error, OOMKilled, …; never shown by /v1.",
    ).optional(),
    logs: z
      .enum(["stored", "unavailable"])
      .describe("Whether the end of the log is in the ledger; absent until it was tried.")
      .optional(),
    metrics: z
      .strictObject({
        status: z.enum(["collecting", "available", "unavailable"]).describe("Where sampling stands."),
        samples: z.int().min(0).meta({ description: "Samples taken.", format: "int32" }).optional(),
        sampledAt: timestamp("When the last sample was taken.").optional(),
        averageCores: sample("cores", "Average CPU"),
        peakCores: sample("cores", "Highest CPU"),
        latestCores: sample("cores", "CPU of the last sample"),
        averageBytes: sample("bytes", "Average memory"),
        peakBytes: sample("bytes", "Highest memory"),
        latestBytes: sample("bytes", "Memory of the last sample"),
      })
      .describe("CPU and memory of the run; what is not known is absent.")
      .optional(),
  })
  .describe("What became of the run.");
export type JobRunStatus = z.output<typeof jobRunStatus>;

/** One run of a scheduled job, or of a command in an application's image. */
export type JobRun = Resource<"JobRun", JobRunSpec, JobRunStatus>;

/** Whether it runs a command in an application's image, apart from its instances. */
export const isOneOff = ({ spec }: Pick<JobRun, "spec">): boolean => spec.command !== undefined;

/** The phase of a JobRun by its conditions, the same for the operator and the API. Pure. */

const statusOf = ({ status }: JobRun, type: JobRunCondition) =>
  status?.conditions?.find((condition) => condition.type === type)?.status;

/** Whether it was not admitted, for good: then there never was a run. */
export const isRunRefused = (run: JobRun): boolean => statusOf(run, "Admitted") === "False";

/** Whether its container never ran, and never will. */
export const isRunNeverStarted = (run: JobRun): boolean => statusOf(run, "Finished") === "False";

/** Whether it may still begin or continue, or its charge is not recorded yet: a deletion of its project waits for it. */
export const isRunPending = (run: JobRun): boolean =>
  !isRunRefused(run) &&
  !isRunNeverStarted(run) &&
  run.status?.chargedAt === undefined &&
  statusOf(run, "Charged") !== "True";
