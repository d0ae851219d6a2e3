import {
  type Ledger,
  listQuotaReservations,
  type QuotaDecision,
  type QuotaRequest,
  type QuotaReservation,
  type ReleaseCondition,
  releaseQuota,
  reserveQuota,
} from "@slipway/ledger";
import { type Logger, withTimeout } from "@slipway/process";

/** Quotas in the ledger. Each call throws when the ledger is unavailable. */
export interface QuotaLedger {
  reserve(request: QuotaRequest): Promise<QuotaDecision>;
  /** Returns whether there was one that fits the condition. */
  release(identity: ProjectIdentity, condition?: ReleaseCondition): Promise<boolean>;
  list(): Promise<QuotaReservation[]>;
}

/** The real one. */
export const ledgerQuotas = (ledger: Ledger): QuotaLedger => ({
  reserve: (request) => reserveQuota(ledger, request),
  release: ({ organizationId, projectId }, condition) =>
    releaseQuota(ledger, projectId, organizationId, condition),
  list: () => listQuotaReservations(ledger),
});

export interface ProjectIdentity {
  organizationId: string;
  projectId: string;
}

/** The ledger does not answer. */
export class LedgerUnavailableError extends Error {
  override readonly name = "LedgerUnavailableError";
}

/** After a failure the ledger is not queried for this long, lest every project waits for it in turn. */
const BACKOFF_MS = 2_000;
/**
 * Timeout of a query; the ledger counts as unavailable then. Reconciles wait for it, and a network that drops packets
 * would delay one after the other. A query may still take effect later: nothing relies on it.
 */
const TIMEOUT_MS = 5_000;

/** Queries of the ledger, none of which waits long: after one that failed, others fail immediately for a while. */
export class LedgerQueries {
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #timeoutMs: number;
  #unavailableUntil = Number.NEGATIVE_INFINITY;
  #isUnavailable = false;

  /** @param now monotonic milliseconds */
  constructor(log: Logger, now: () => number, timeoutMs = TIMEOUT_MS) {
    this.#log = log;
    this.#now = now;
    this.#timeoutMs = timeoutMs;
  }

  /** @throws LedgerUnavailableError */
  async query<T>(query: () => Promise<T>): Promise<T> {
    if (this.#now() < this.#unavailableUntil) {
      throw new LedgerUnavailableError("the ledger did not answer a moment ago");
    }
    try {
      const answer = await withTimeout(query(), this.#timeoutMs);
      if (this.#isUnavailable) {
        this.#log.info({}, "quotas can be reserved again");
      }
      this.#isUnavailable = false;
      return answer;
    } catch (error) {
      this.#unavailableUntil = this.#now() + BACKOFF_MS;
      if (!this.#isUnavailable) {
        this.#log.warn({ err: error }, "quotas cannot be reserved");
      }
      this.#isUnavailable = true;
      throw new LedgerUnavailableError("the ledger does not answer", { cause: error });
    }
  }
}

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
