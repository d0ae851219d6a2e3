import { PROJECT_ID } from "@slipway/crds";
import type { FastifyRequest } from "fastify";
import { toFailure } from "../errors/handler.ts";
import { withLedgerErrors } from "../ledger/availability.ts";
import type { Services } from "../services.ts";
import type { Answer } from "./exchange.ts";

/**
 * Writes the audit row of a call, once, before it changes anything.
 * @param about the project, when the path does not say, and what follows the operation's name
 * @throws Failure 503 when the ledger does not store it
 */
export async function beginCallAudit(
  request: FastifyRequest,
  { audit }: Pick<Services, "audit">,
  about: { projectId?: string; operation?: string } = {},
): Promise<void> {
  const { operation, principal, ip } = request;
  if (request.auditId !== undefined || !operation || !principal) {
    return;
  }
  request.auditId = await withLedgerErrors(() =>
    audit.begin({
      organizationId: principal.organizationId,
      actor: principal.actor,
      operation: about.operation ?? operation.operationId,
      projectId: about.projectId ?? projectOfPath(request),
      sourceIp: ip,
    }),
  );
}

/** Runs what an audited call does, and records the outcome in its row, when it has one: also when the client has disconnected. */
export async function withAuditOutcome(
  request: FastifyRequest,
  { audit }: Pick<Services, "audit">,
  work: () => Promise<Answer>,
): Promise<Answer> {
  const finish = (status: number, code: string | null) => {
    if (request.auditId === undefined) {
      return;
    }
    audit.finish(request.auditId, { status, code, projectId: request.writtenProjectId ?? null });
  };
  try {
    const answer = await work();
    // A WebSocket's outcome is known once it is closed.
    if (!("accept" in answer)) {
      finish(answer.status, null);
    }
    return answer;
  } catch (error) {
    const { status, code } = toFailure(error, request);
    finish(status, code);
    throw error;
  }
}

/** The project that the path names, whether it exists or not. */
export function projectOfPath(request: FastifyRequest): string | null {
  const { id } = (request.params ?? {}) as { id?: string };
  return id !== undefined && PROJECT_ID.test(id) ? id : null;
}
