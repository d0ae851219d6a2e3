import {
  isConflict,
  isForbidden,
  isNamespaceTerminating,
  isNotFound,
  KubeError,
} from "@slipway/controller-runtime";
import { failures } from "../errors/catalog.ts";
import type { Failure } from "../errors/failure.ts";
import { resourceQuotaFailure } from "./limits.ts";

/** What the answers of the cluster mean for one object of an organization; the others mean the same for all. */
export interface Meanings {
  /** There is no such object. */
  missing?: () => Failure;
  /** It changed since it was read. */
  conflict?: () => Failure;
}

/** Makes failures of what a call of the cluster in an organization's namespace is refused with. @throws Failure 404, 409, 503 */
export async function withClusterErrors<T>(
  call: Promise<T>,
  { missing, conflict }: Meanings = {},
): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof KubeError)) {
      throw error;
    }
    if (isNotFound(error) && missing) {
      throw missing();
    }
    if (isConflict(error) && conflict) {
      throw conflict();
    }
    const ceiling = resourceQuotaFailure(error);
    if (ceiling) {
      throw ceiling;
    }
    // The operator grants rights in an organization's namespace while it provisions it.
    if (isForbidden(error) || isNotFound(error) || isNamespaceTerminating(error)) {
      throw failures.organizationRuntimeUnavailable();
    }
    throw failures.clusterUnavailable(error);
  }
}
