/**
 * What each write of the operator does in the life of a run, recognized by the request alone. A write to a resource of runs that is
 * not known here is `unknown: …`: the tests fail until it is named and has its faults.
 */

type Json = Record<string, unknown>;

/** Kinds of writes in the life of a run. At each the operator is killed before it, between commit and answer, and after it. */
export const runWrites = {
  scheduleFollowed: "Project: schedule followed",
  scheduleClosed: "Project: schedule closed",
  slotTaken: "Project: slot taken",
  slotReleased: "Project: slot released",
  missed: "Project: occurrences missed",
  runCreated: "JobRun: created",
  runRefused: "JobRun: refused",
  runAdmitted: "JobRun: admitted",
  podRecorded: "JobRun: pod recorded",
  conditionsRecorded: "JobRun: conditions recorded",
  runRunning: "JobRun: running",
  heartbeat: "JobRun: observed running",
  cancelling: "JobRun: cancelling",
  runEnded: "JobRun: ended",
  neverStarted: "JobRun: never started",
  runCharged: "JobRun: charged",
  runFinalizerOn: "JobRun: finalizer set",
  runFinalizerOff: "JobRun: finalizer removed",
  runDeleted: "JobRun: deleted",
  jobCreated: "Job: created",
  jobAdmitted: "Job: admitted",
  jobFinalizerOff: "Job: finalizer removed",
  jobDeleted: "Job: deleted",
  podFinalizerOff: "Pod: finalizer removed",
  podStopped: "Pod: stopped",
} as const;
export type RunWrite = (typeof runWrites)[keyof typeof runWrites];

const ENDED = ["succeeded", "failed", "deadline_exceeded", "cancelled"];

/** The resource and the subresource that a path names. */
function target(path: string): { resource: string; subresource: string; named: boolean } {
  const [, , , resource = "", name, subresource = ""] =
    /^\/(?:api\/v1|apis\/([^/]+)\/[^/]+)(\/namespaces\/[^/]+)?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(
      path,
    ) ?? [];
  return { resource, subresource, named: name !== undefined };
}

/** What a write does; see {@link runWrites}. `other: …` for those that have nothing to do with runs. */
export function kindOf(method: string, path: string, body: unknown, contentType = ""): string {
  const { resource, subresource } = target(path);
  const other = `${method} ${resource}${subresource ? `/${subresource}` : ""}`;
  const json = (body ?? {}) as { status?: Json; spec?: Json; metadata?: Json };
  // The project controller applies whole children and replaces whole statuses, conditionally; neither begins nor ends a run.
  if (contentType.includes("apply-patch") || method === "PUT") {
    return `other: ${other}`;
  }
  const known = ((): RunWrite | undefined => {
    switch (resource) {
      case "jobruns":
        return jobRunWrite(method, subresource, json);
      case "jobs":
        return jobWrite(method, json);
      case "pods":
        return podWrite(method, json);
      case "projects":
        return subresource === "status" ? projectWrite(json) : undefined;
      default:
        return undefined;
    }
  })();
  if (known) {
    return known;
  }
  const ofRuns = ["jobruns", "jobs", "pods"].includes(resource) || (resource === "projects" && subresource);
  return `${ofRuns ? "unknown" : "other"}: ${other}${ofRuns ? ` ${JSON.stringify(body)}` : ""}`;
}

function projectWrite({ status }: { status?: Json }): RunWrite | undefined {
  const job = status?.job as Json | undefined;
  if (!job) {
    return undefined;
  }
  if (typeof job.activeRun === "string") {
    return runWrites.slotTaken;
  }
  if (job.activeRun === null) {
    return runWrites.slotReleased;
  }
  if (job.missed !== undefined) {
    return runWrites.missed;
  }
  if (typeof job.scheduledSince === "string") {
    return runWrites.scheduleFollowed;
  }
  if (typeof job.scheduleClosedAt === "string") {
    return runWrites.scheduleClosed;
  }
  return undefined;
}

function jobRunWrite(
  method: string,
  subresource: string,
  { status, metadata }: { status?: Json; metadata?: Json },
): RunWrite | undefined {
  if (method === "POST") {
    return runWrites.runCreated;
  }
  if (method === "DELETE") {
    return runWrites.runDeleted;
  }
  if (subresource !== "status") {
    return finalizer(metadata, runWrites.runFinalizerOff, runWrites.runFinalizerOn);
  }
  if (!status) {
    return undefined;
  }
  const conditions = (status.conditions ?? []) as { type: string; status: string }[];
  const hasCondition = (type: string, value: string) =>
    conditions.some((condition) => condition.type === type && condition.status === value);
  if (status.chargedAt !== undefined) {
    return runWrites.runCharged;
  }
  if (hasCondition("Finished", "False")) {
    return runWrites.neverStarted;
  }
  if (ENDED.includes(String(status.phase))) {
    return runWrites.runEnded;
  }
  if (status.phase === "running") {
    return runWrites.runRunning;
  }
  if (hasCondition("Admitted", "False")) {
    return runWrites.runRefused;
  }
  if (hasCondition("Cancelling", "True")) {
    return runWrites.cancelling;
  }
  if (status.admittedAt !== undefined) {
    return runWrites.runAdmitted;
  }
  if (status.podName !== undefined || status.nodeName !== undefined) {
    return runWrites.podRecorded;
  }
  if (status.lastObservedRunningAt !== undefined) {
    return runWrites.heartbeat;
  }
  if (status.conditions !== undefined || status.observedGeneration !== undefined) {
    return runWrites.conditionsRecorded;
  }
  return undefined;
}

function jobWrite(
  method: string,
  { spec, metadata }: { spec?: Json; metadata?: Json },
): RunWrite | undefined {
  if (method === "POST") {
    return runWrites.jobCreated;
  }
  if (method === "DELETE") {
    return runWrites.jobDeleted;
  }
  if (spec?.suspend === false) {
    return runWrites.jobAdmitted;
  }
  return finalizer(metadata, runWrites.jobFinalizerOff);
}

function podWrite(method: string, { metadata }: { metadata?: Json }): RunWrite | undefined {
  if (method === "DELETE") {
    return runWrites.podStopped;
  }
  return finalizer(metadata, runWrites.podFinalizerOff);
}

function finalizer(metadata: Json | undefined, off: RunWrite, on?: RunWrite): RunWrite | undefined {
  const finalizers = metadata?.finalizers;
  if (finalizers === undefined) {
    return undefined;
  }
  const isSet = Array.isArray(finalizers) && finalizers.includes("slipway.dev/jobrun");
  return isSet ? on : off;
}
