/** What reconcilers throw, with a reason that the catalog of conditions has. */

import type {
  BackupConditionCatalog,
  BuildConditionCatalog,
  CommonReason,
  DomainClaimConditionCatalog,
  GitConnectionConditionCatalog,
  JobRunConditionCatalog,
  ProjectConditionCatalog,
} from "@slipway/crds";
import {
  RetryableError as Retryable,
  TerminalError as Terminal,
  WaitingError as Waiting,
} from "./runtime/index.ts";

type OfKind =
  | BackupConditionCatalog
  | BuildConditionCatalog
  | DomainClaimConditionCatalog
  | GitConnectionConditionCatalog
  | JobRunConditionCatalog
  | ProjectConditionCatalog;

interface Catalog {
  type: OfKind["type"];
  reason: OfKind["reason"] | CommonReason;
}

export class TerminalError extends Terminal<Catalog> {}
export class WaitingError extends Waiting<Catalog> {}
export class RetryableError extends Retryable<Catalog> {}
