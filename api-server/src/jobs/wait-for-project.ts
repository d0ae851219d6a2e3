import { setTimeout as sleep } from "node:timers/promises";
import type { Project } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import type { ApiProject } from "../projects/api-project.ts";
import type { Services } from "../services.ts";

const LOOK_EVERY_MS = 50;

/**
 * Waits until the operator has said of a project what is waited for.
 * @param told looks at the project as it is in memory
 * @throws Failure 409 when the project is gone; 503 when the operator says nothing for `limitMs`
 */
export async function waitForProject(
  { organizationId, id }: ApiProject,
  { projects }: Pick<Services, "projects">,
  told: (project: Project) => boolean,
  limitMs: number,
): Promise<void> {
  for (let waited = 0; ; waited += LOOK_EVERY_MS) {
    const now = await projects.find(organizationId, id);
    if (now === undefined) {
      throw failures.projectAlreadyDeleted();
    }
    if (told(now.resource)) {
      return;
    }
    if (waited >= limitMs) {
      throw failures.operatorUnavailable();
    }
    await sleep(LOOK_EVERY_MS);
  }
}
