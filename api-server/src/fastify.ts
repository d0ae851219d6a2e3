import type { AuditKey } from "@slipway/ledger";
import type { Span } from "@slipway/process/tracing";
import type { Principal } from "./auth/principal.ts";
import type { BodyReservation } from "./http/body-budget.ts";
import type { OperationObservation } from "./http/call-metrics.ts";
import type { ApiProject } from "./projects/api-project.ts";

/** The data of the called operation that hooks need. */
export interface Operation {
  readonly operationId: string;
  readonly observation: OperationObservation;
  /** Whether it leaves a line in the audit log. */
  readonly audited: boolean;
}

declare module "fastify" {
  interface FastifyContextConfig {
    operationId?: string;
  }

  interface FastifyRequest {
    /** Who sent it; set by the guard, except for public operations. */
    principal: Principal | undefined;
    /** The organization whose hook was called; set by the guard of deliveries before the signature is verified. */
    hookOrganizationId: string | undefined;
    /** The project of the path; set by the guard of operations with project access. */
    project: ApiProject | undefined;
    /** The id of the project that the call created, for the audit log. */
    writtenProjectId: string | undefined;
    /** The call's row in the audit log, once it is written. */
    auditId: AuditKey | undefined;
    /** The code of the failure that was answered. */
    failureCode: string | undefined;
    /** The bytes reserved for its body, when it has a body. */
    bodyReservation: BodyReservation | undefined;
    /** What its rate is counted under; set by the guard. */
    countedAs: string | undefined;
    /** What is called; undefined for an unknown path. Set by the guard. */
    operation: Operation | undefined;
    /** Its span, when it is traced. */
    span?: Span;
  }
}
