import { setTimeout as sleep } from "node:timers/promises";
import type { ApiProject } from "../projects/api-project.ts";
import type { Services } from "../services.ts";

const LIMIT_MS = 1_500;
const POLL_MS = 50;

/**
 * A default domain is made from the first name, and the status remembers it. Resolves once it does, or after a moment: a
 * name that changes before would change the domain that the creation returned.
 */
export async function waitForFirstDomain(
  { organizationId, id, resource }: ApiProject,
  { projects }: Pick<Services, "projects">,
): Promise<void> {
  const { type, exposure, subdomain } = resource.spec;
  if (type !== "http" || exposure !== "public" || subdomain !== undefined) {
    return;
  }
  const deadline = performance.now() + LIMIT_MS;
  for (;;) {
    const latest = await projects.find(organizationId, id);
    if (!latest || latest.resource.status?.domain !== undefined || performance.now() > deadline) {
      return;
    }
    await sleep(POLL_MS);
  }
}
