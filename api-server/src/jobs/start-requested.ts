import { failures } from "../errors/catalog.ts";
import { newManualRunId } from "../ids.ts";
import { refuseStart } from "../organizations/service.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { idempotencyKeyErrors, isIdempotencyKey } from "../projects/creation/body.ts";
import type { Services } from "../services.ts";
import type { RunRequest } from "./run-object.ts";
import { type StartedRun, startRun } from "./start.ts";
import { startRunByKey } from "./start-by-key.ts";

/**
 * Starts the run that a client requests: once per key, where it sends one.
 * @param key the header `Idempotency-Key`
 * @throws Failure 400 for a malformed key, 402 for a blocked organization, and as `startRunByKey`
 */
export async function startRequestedRun(
  project: ApiProject,
  key: unknown,
  services: Services,
  request: RunRequest = {},
): Promise<StartedRun> {
  const errors = idempotencyKeyErrors(key);
  if (errors.length > 0) {
    throw failures.validation(errors);
  }
  await refuseStart(services, project.organizationId);
  return isIdempotencyKey(key)
    ? startRunByKey(project, key, services, request)
    : startRun(project, newManualRunId(project.id, services.now()), services, request);
}
