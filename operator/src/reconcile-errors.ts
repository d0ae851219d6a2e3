/** Errors of reconcilers, with a reason of the catalog of conditions. */

import {
  RetryableError as Retryable,
  type RuntimeReason,
  TerminalError as Terminal,
  WaitingError as Waiting,
} from "@slipway/controller-runtime";
import {
  type BackupConditionCatalog,
  type BuildConditionCatalog,
  type CommonReason,
  commonReasons,
  type DeletedProjectConditionCatalog,
  type DomainClaimConditionCatalog,
  type GitConnectionConditionCatalog,
  type JobRunConditionCatalog,
  type ProjectConditionCatalog,
} from "@slipway/crds";

type OfKind =
  | BackupConditionCatalog
  | BuildConditionCatalog
  | DeletedProjectConditionCatalog
  | DomainClaimConditionCatalog
  | GitConnectionConditionCatalog
  | JobRunConditionCatalog
  | ProjectConditionCatalog;

// The catalog has the reasons of the runtime. An apiserver that does not answer is no observation of the object.
void (commonReasons satisfies Record<Exclude<RuntimeReason, "ApiUnavailable">, string>);

interface Catalog {
  type: OfKind["type"];
  reason: OfKind["reason"] | CommonReason;
}

export class TerminalError extends Terminal<Catalog> {}
export class WaitingError extends Waiting<Catalog> {}
export class RetryableError extends Retryable<Catalog> {}
