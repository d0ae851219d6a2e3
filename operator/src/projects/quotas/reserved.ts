import { type QuotaRequest, type QuotaReservation } from "@slipway/ledger";
import { type ProjectIdentity } from "./quota-ledger.ts";

/** A quota of a project, as this process knows it from the ledger. */
export interface Reserved extends ProjectIdentity {
  plan: string;
  scope: string | null;
  amount: number;
  version: string;
  /** Reserved by another process so recently that its project may not be written yet: this process must not release it. */
  ahead?: boolean;
}

/**
 * A quota that was reserved more recently may belong to a change that the API has not written yet: the difference is
 * ignored.
 */
const PENDING_SECONDS = 60;

export const keyOf = ({ organizationId, projectId }: ProjectIdentity): string =>
  `${organizationId}/${projectId}`;

export const reservedOf = (request: QuotaRequest, version: string): Reserved => ({
  organizationId: request.organizationId,
  projectId: request.projectId,
  plan: request.plan,
  scope: request.limit?.scope ?? null,
  amount: request.amount,
  version,
});

export const reservedOfRow = (row: QuotaReservation): Reserved => ({
  organizationId: row.organization_id,
  projectId: row.project_id,
  plan: row.plan,
  scope: row.scope,
  amount: row.slots,
  version: row.version,
  ahead: row.idle_seconds < PENDING_SECONDS,
});

export const isSame = (reserved: Reserved, request: QuotaRequest): boolean =>
  isSameReserved(reserved, reservedOf(request, reserved.version));

export const isSameReserved = (a: Reserved, b: Reserved): boolean =>
  a.plan === b.plan && a.scope === b.scope && a.amount === b.amount;
