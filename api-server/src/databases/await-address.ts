import { setTimeout as sleep } from "node:timers/promises";
import type { ApiProject } from "../projects/api-project.ts";
import type { Services } from "../services.ts";
import { connectionOf } from "./connection.ts";

/** How long the answer to a creation waits for the address, which the operator has within a moment. */
export const ADDRESS_LIMIT_MS = 10_000;
const LOOK_EVERY_MS = 50;

/**
 * The project once it says where clients connect; or as it is when that takes too long, or when the operator does not carry
 * it out.
 */
export async function awaitAddress(
  created: ApiProject,
  { projects }: Pick<Services, "projects">,
  limitMs: number = ADDRESS_LIMIT_MS,
): Promise<ApiProject> {
  const deadline = Date.now() + limitMs;
  let now = created;
  while (connectionOf(now.resource) === null && !isRefused(now) && Date.now() < deadline) {
    await sleep(LOOK_EVERY_MS);
    const found = await projects.find(created.organizationId, created.id);
    // Somebody has deleted it already.
    if (!found) {
      break;
    }
    now = found;
  }
  return now;
}

function isRefused({ resource: { status } }: ApiProject): boolean {
  return status?.conditions?.some(({ type, status }) => type === "Accepted" && status === "False") ?? false;
}
