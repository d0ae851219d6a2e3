import { completeIdempotencyKey, type IdempotencyRecord } from "@slipway/ledger";
import { failures } from "../errors/catalog.ts";
import { Failure } from "../errors/failure.ts";
import { newManualRunId } from "../ids.ts";
import { withLedgerErrors } from "../ledger/availability.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { bodyHash } from "../projects/creation/idempotency.ts";
import { withIdempotencyLock } from "../projects/creation/idempotency-lock.ts";
import type { Services } from "../services.ts";
import { findRow } from "./read.ts";
import { type RunRequest, scheduledAtOf } from "./run-object.ts";
import { type StartedRun, startRun } from "./start.ts";

/** The operator refuses a run that was requested long ago. */
const FRESH_MS = 5 * 60_000;

/**
 * Starts a run once per key: a repeat answers the same run, permanently. A refusal frees the key; a call whose outcome is not
 * known is finished by the next one under the same id.
 * @throws Failure as `startRun`, and 409 when the key was used with another request
 */
export async function startRunByKey(
  project: ApiProject,
  key: string,
  services: Pick<Services, "catalog" | "jobRuns" | "kube" | "ledger" | "now" | "projects">,
  request: RunRequest = {},
): Promise<StartedRun> {
  const { ledger, now } = services;
  // No key of a creation has a colon: keys of different operations and projects are distinct.
  const name = { organizationId: project.organizationId, key: `run:${project.id}:${key}` };
  const bodySha256 = bodyHash(request.command === undefined ? null : request);
  const existing = async (record: IdempotencyRecord): Promise<StartedRun | undefined> => {
    if (!record.body_sha256.equals(bodySha256)) {
      throw failures.idempotencyKeyConflict();
    }
    return record.completed_at === null ? undefined : startedBefore(project, record.project_id, services);
  };
  const newId = () => newManualRunId(project.id, now());
  return withIdempotencyLock(
    ledger,
    name,
    bodySha256,
    newId,
    existing,
    async ({ projectId: id, leftover, free }) => {
      const before = leftover ? await endedBefore(project, id, services) : undefined;
      if (before === "expired") {
        await free();
        throw failures.creationInProgress();
      }
      try {
        const started = before ?? (await startRun(project, id, services, request));
        const completed = await withLedgerErrors(() => completeIdempotencyKey(ledger, name, id, now()));
        if (!completed) {
          throw failures.creationInProgress();
        }
        return started;
      } catch (error) {
        if (error instanceof Failure && isRefusal(error)) {
          await free();
        }
        throw error;
      }
    },
  );
}

/** Whether nothing is left of the call. */
const isRefusal = ({ status, code }: Failure): boolean => status < 500 || code === "OPERATOR_UNAVAILABLE";

/**
 * The run that an earlier call requested and that has ended and been deleted since: it must not run twice. Undefined when it is
 * still there, or may still be created under its id; `expired` when it was never created and its minute is over, so that the
 * next call needs another id.
 */
async function endedBefore(
  project: ApiProject,
  id: string,
  services: Pick<Services, "jobRuns" | "ledger" | "now">,
): Promise<StartedRun | "expired" | undefined> {
  if (await services.jobRuns.find(project, id)) {
    return undefined;
  }
  const row = await findRow(project, id, services);
  if (row) {
    return { id, scheduledAt: row.scheduled_at };
  }
  const now = services.now();
  return now.getTime() - scheduledAtOf(id, now).getTime() < FRESH_MS ? undefined : "expired";
}

async function startedBefore(
  project: ApiProject,
  id: string,
  services: Pick<Services, "jobRuns" | "ledger">,
): Promise<StartedRun> {
  const run = await services.jobRuns.find(project, id);
  if (run) {
    return { id, scheduledAt: new Date(run.spec.scheduledAt) };
  }
  const row = await findRow(project, id, services);
  // One that never started is nowhere any more: its id has the minute.
  return { id, scheduledAt: row?.scheduled_at ?? scheduledAtOf(id, new Date(0)) };
}
