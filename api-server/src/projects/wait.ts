import { setTimeout as sleep } from "node:timers/promises";
import type { Project } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import type { Services } from "../services.ts";
import type { ApiProject } from "./api-project.ts";

const POLL_INTERVAL_MS = 50;

/**
 * Waits until the operator has reported a condition of a project.
 * @param isReached checks the project as it is in memory
 * @throws Failure 409 when the project is deleted; 503 when it is not reached within `limitMs`
 */
export async function waitForProject(
  { organizationId, id }: ApiProject,
  { projects }: Pick<Services, "projects">,
  isReached: (project: Project) => boolean,
  limitMs: number,
): Promise<void> {
  for (let waited = 0; ; waited += POLL_INTERVAL_MS) {
    const now = await projects.find(organizationId, id);
    if (now === undefined) {
      throw failures.projectAlreadyDeleted();
    }
    if (isReached(now.resource)) {
      return;
    }
    if (waited >= limitMs) {
      throw failures.operatorUnavailable();
    }
    await sleep(POLL_INTERVAL_MS);
  }
}
