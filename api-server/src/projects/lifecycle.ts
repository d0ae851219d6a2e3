import { setTimeout as sleep } from "node:timers/promises";
import type { ProjectPhase, ProjectSpec } from "@slipway/crds";
import { refuseBlocked } from "../organizations/service.ts";
import type { Services } from "../services.ts";
import type { ApiProject } from "./api-project.ts";
import { type ChangeServices, changeProject } from "./change.ts";
import { changeWithQuota, type QuotaVersion, readProjectQuota, releaseProjectQuota } from "./quotas.ts";
import { phaseOf } from "./view.ts";

/** How long an answer waits for the operator. */
const SEEN_LIMIT_MS = 2_000;
const SEEN_EVERY_MS = 50;

/**
 * Pauses a project, and releases its quota unless another call has resumed it meanwhile. Idempotent.
 * @throws Failure
 */
export async function pauseProject(
  project: ApiProject,
  services: ChangeServices & Pick<Services, "ledger" | "logger">,
): Promise<ApiProject> {
  const identity = { organizationId: project.organizationId, projectId: project.id };
  const pause = (spec: ProjectSpec): ProjectSpec => ({ ...spec, paused: true });
  let known: QuotaVersion;
  const { project: paused, changed } = await changeProject(project, services, pause, {
    // Read before the pause, and so before anyone can resume it. Without a ledger the operator releases it.
    prepare: async () => {
      known = await readProjectQuota(services, identity).catch(() => undefined);
    },
  });
  if (changed) {
    await releaseProjectQuota(services, identity, known).catch((error: unknown) => {
      // The project is paused; the operator releases the quota.
      services.logger.warn(
        { err: error, project: project.id },
        "quota of a paused project is not released yet",
      );
    });
  }
  return paused;
}

/** Resumes a paused project. Idempotent. @throws Failure 402, 409 when the plan's quota is exhausted */
export async function resumeProject(
  project: ApiProject,
  services: ChangeServices & Pick<Services, "catalog" | "ledger">,
): Promise<ApiProject> {
  const resume = ({ paused: _, ...spec }: ProjectSpec): ProjectSpec => spec;
  const change = await changeWithQuota(project, services, resume, {
    prepare: () => refuseBlocked(services, project.organizationId),
  });
  return change.project;
}

/**
 * The project's status once the operator has observed the current spec and, where one is expected, the project has reached that status;
 * or as it is after a short wait: instances may take their time to end.
 */
export async function statusOnceSeen(
  written: ApiProject,
  { projects }: Pick<Services, "projects">,
  awaited?: ProjectPhase,
): Promise<string> {
  const { generation = 0 } = written.resource.metadata;
  const isSeen = ({ resource: { status } }: ApiProject): boolean =>
    (status?.observedGeneration ?? 0) >= generation && (awaited === undefined || status?.phase === awaited);
  let now = written;
  for (let waited = 0; waited < SEEN_LIMIT_MS && !isSeen(now); waited += SEEN_EVERY_MS) {
    await sleep(SEEN_EVERY_MS);
    now = (await projects.find(written.organizationId, written.id)) ?? now;
  }
  return phaseOf(now.resource);
}
