import {
  billingCycle,
  CURRENCY,
  durationSeconds,
  isOneOff,
  isRunNeverStarted,
  isRunRefused,
  type JobRun,
  jobRunPhases,
} from "@slipway/crds";
import type { JobRunRow } from "@slipway/ledger";
import { z } from "zod";
import { failures } from "../errors/catalog.ts";
import type { ApiProject } from "../projects/api-project.ts";
import type { Services } from "../services.ts";
import { findRow, mergedPage, type RunPage } from "./read.ts";
import { jsonDecimal, runOfResource, runOfRow } from "./run.ts";

/** One-off runs of applications, from their custom resources and from the ledger, and how `/v1` shows them. */

export const oneOffPhases = ["pending", ...jobRunPhases] as const;
export type OneOffPhase = (typeof oneOffPhases)[number];

/** A one-off run. What is only in its custom resource is absent some time after its end. */
export interface OneOffRun {
  id: string;
  status: OneOffPhase;
  /** Why it has failed without having run. */
  reason?: "never_started";
  /** When it was requested. */
  scheduledAt: Date;
  startedAt?: Date;
  finishedAt?: Date;
  exitCode?: number;
  billedMinutes?: number;
  /** BRL cents, a decimal. */
  amount?: string;
  plan?: string;
  resource?: JobRun;
}

/** Undefined for one that was refused, which never was a run, and for what is no one-off run. */
export function oneOffOfResource(resource: JobRun): OneOffRun | undefined {
  const { metadata, spec, status } = resource;
  if (!isOneOff(resource) && runOfResource(resource) === undefined) {
    return undefined;
  }
  if (isRunRefused(resource)) {
    return undefined;
  }
  const isFailedStart = isRunNeverStarted(resource) && status?.phase === undefined;
  const run = runOfResource(resource);
  return {
    id: metadata.name,
    status: isFailedStart ? "failed" : (status?.phase ?? "pending"),
    ...(isFailedStart ? { reason: "never_started" as const } : {}),
    scheduledAt: new Date(spec.scheduledAt),
    ...(run && { startedAt: run.startedAt, finishedAt: run.finishedAt }),
    ...(run && { billedMinutes: run.billedMinutes, amount: run.amount }),
    ...(status?.exitCode === undefined ? {} : { exitCode: status.exitCode }),
    ...(status?.plan === undefined ? {} : { plan: status.plan }),
    resource,
  };
}

export const oneOffOfRow = (row: JobRunRow): OneOffRun => ({
  ...runOfRow(row),
  ...(row.metrics?.exitCode === undefined ? {} : { exitCode: row.metrics.exitCode }),
});

/**
 * A run that was requested or has started in the current billing cycle.
 * @throws Failure 404 for any other, 503 when it is not in memory and the ledger is unavailable
 */
export async function findOneOff(
  project: ApiProject,
  runId: string,
  services: Pick<Services, "jobRuns" | "ledger" | "now">,
): Promise<OneOffRun> {
  const resource = await services.jobRuns.find(project, runId);
  const kept = resource && oneOffOfResource(resource);
  const row = kept ? undefined : await findRow(project, runId, services);
  const run = kept ?? (row && oneOffOfRow(row));
  if (!run || !isInCycle(run, billingCycle(services.now()))) {
    throw failures.jobRunNotFound(runId);
  }
  return run;
}

/** One page of a project's runs of the current billing cycle, newest requested first. @throws Failure 503 when the ledger is unavailable */
export async function listOneOff(
  query: { page: number; limit: number; status?: OneOffPhase | undefined },
  project: ApiProject,
  services: Pick<Services, "jobRuns" | "ledger" | "now">,
): Promise<{ runs: OneOffRun[]; total: number; cycle: RunPage["cycle"] }> {
  const cycle = billingCycle(services.now());
  // Read before the ledger: what is removed from the one by then is in the other.
  const kept = new Map(
    services.jobRuns
      .ofProject(project)
      .flatMap((resource) => oneOffOfResource(resource) ?? [])
      .map((run) => [run.id, run]),
  );
  const uncharged = [...kept.values()].filter(
    (run) => run.resource?.status?.chargedAt === undefined && isInCycle(run, cycle),
  );
  const { items, total } = await mergedPage(query, project, services, { uncharged, cycle });
  const runs = items.map((item) =>
    "organization_id" in item ? (kept.get(item.id) ?? oneOffOfRow(item)) : item,
  );
  return { runs, total, cycle };
}

function isInCycle({ startedAt, scheduledAt }: OneOffRun, cycle: RunPage["cycle"]): boolean {
  const at = startedAt ?? scheduledAt;
  return at >= cycle.startedAt && at < cycle.nextResetAt;
}

/** A run as `/v1` shows it; what it does not have yet, or what is no longer kept, is left out. Pure. */
export function oneOffItem(run: OneOffRun) {
  const { startedAt, finishedAt, amount, resource } = run;
  const { command, timeoutSeconds } = resource?.spec ?? {};
  const { deployment, image } = resource?.status ?? {};
  const duration = startedAt && finishedAt && durationSeconds(startedAt, finishedAt);
  return defined({
    id: run.id,
    status: run.status,
    reason: run.reason,
    command,
    timeout_seconds: timeoutSeconds,
    deployment_id: deployment,
    image: image && defined({ reference: image.reference, digest: image.digest }),
    requested_at: run.scheduledAt.toISOString(),
    started_at: startedAt?.toISOString(),
    finished_at: finishedAt?.toISOString(),
    duration_seconds: duration,
    exit_code: run.exitCode,
    billed_minutes: run.billedMinutes,
    plan: run.plan,
    amount: amount === undefined ? undefined : jsonDecimal(amount),
    currency: CURRENCY,
  });
}

const defined = (members: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));

export const oneOffSchema = z.object({
  id: z.string(),
  status: z
    .enum(oneOffPhases)
    .describe("pending until its container has started: it waits for a node, or for its image."),
  reason: z.literal("never_started").describe("Of one that has failed without having run.").optional(),
  command: z
    .array(z.string())
    .describe(
      "Shown to all who may read the project. Absent a while after its end, as timeout_seconds, deployment_id and image.",
    )
    .optional(),
  timeout_seconds: z.int().optional(),
  deployment_id: z.string().describe("Deployment whose image and variables it has.").optional(),
  image: z.object({ reference: z.string(), digest: z.string().optional() }).optional(),
  requested_at: z.string(),
  started_at: z.string().optional(),
  finished_at: z.string().optional(),
  duration_seconds: z.int().min(0).optional(),
  exit_code: z.int().min(0).max(255).describe("Exit code of its process, where it had one.").optional(),
  billed_minutes: z.int().min(0).max(60).optional(),
  plan: z.string().optional(),
  amount: z.number().describe("BRL cents, exact; it may be a fraction.").optional(),
  currency: z.literal(CURRENCY),
});
