import {
  isForbidden,
  isInvalid,
  isNamespaceTerminating,
  isNotFound,
  isUnbound,
  KubeError,
} from "@slipway/controller-runtime";
import type { DatabaseCredentials } from "@slipway/crds";
import { failures } from "../../errors/catalog.ts";
import { Failure } from "../../errors/failure.ts";
import { resourceQuotaFailure } from "../../organizations/limits.ts";
import type { Services } from "../../services.ts";
import type { ApiProject } from "../api-project.ts";
import type { ProjectIdentity } from "../quotas.ts";
import { undoCreation, type WrittenObjects } from "./write.ts";

/** How the creation of a project ends: with a project, or with a failure and what undoes the creation. */

/** The result of a creation. */
export interface Created {
  project: ApiProject;
  /** Of a database: the content of its Secret, to be shown once. Absent in the answer to a repeat. */
  credentials?: DatabaseCredentials;
}

/** How a creation ended. */
export type Attempt =
  | Created
  /**
   * `undo` deletes what is left of it, and returns whether it could; undefined when it is not known what was written, and
   * the next attempt, or the operator, continues from there.
   */
  | { failure: unknown; undo: (() => Promise<boolean>) | undefined };

export const nothingToUndo = async (): Promise<boolean> => true;

/** The outcome of a creation that met this error, before or after it began to write. */
export function failedAttempt(
  error: unknown,
  identity: ProjectIdentity,
  services: Pick<Services, "domainZone" | "kube" | "ledger" | "logger">,
  written?: WrittenObjects,
): Extract<Attempt, { failure: unknown }> {
  if (isUnbound(error)) {
    const { organizationId } = identity;
    services.logger.warn(
      { organizationId, refusal: (error as Error).message },
      "rights over a namespace are missing",
    );
  }
  const undo = isAnswered(error) ? () => undoCreation(identity, services, written) : undefined;
  return { failure: toFailure(error), undo };
}

const ANSWERS: readonly string[] = [
  "ORGANIZATION_RUNTIME_UNAVAILABLE",
  "ADDRESS_NOT_ASSIGNED",
  "SCHEDULED_JOBS_UNAVAILABLE",
  "PROJECT_TYPE_UNAVAILABLE",
  "BACKUPS_UNAVAILABLE",
];

/** Whether the request was refused with an answer: one without an answer may have been carried out. */
function isAnswered(error: unknown): boolean {
  if (error instanceof KubeError) {
    return error.status > 0 && error.status < 500;
  }
  return error instanceof Failure && (error.status < 500 || ANSWERS.includes(error.code));
}

function toFailure(error: unknown): unknown {
  if (!(error instanceof KubeError)) {
    return error;
  }
  if (isNotFound(error) || isNamespaceTerminating(error) || isUnbound(error)) {
    return failures.organizationRuntimeUnavailable();
  }
  const ceiling = resourceQuotaFailure(error);
  if (ceiling) {
    return ceiling;
  }
  // The rest of the organization's quota is the platform's own guard: it refuses with 403.
  if (isForbidden(error)) {
    return failures.planCapacityTemporarilyUnavailable(error);
  }
  if (isInvalid(error)) {
    return failures.internal(error);
  }
  return failures.clusterUnavailable(error);
}
