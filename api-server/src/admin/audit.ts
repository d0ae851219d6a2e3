import { type AuditKey, beginAudits, finishAudits } from "@slipway/ledger";
import { type AdminContext, AdminError } from "./context.ts";

/**
 * Runs an admin command with its row in the audit log, written before anything changes.
 * @throws what the command throws, or the ledger
 */
export async function audited(
  { ledger }: AdminContext,
  intent: { operation: string; organizationId: string | null },
  work: () => Promise<object>,
): Promise<object> {
  const [key] = await beginAudits(ledger, [{ ...intent, actor: "admin", projectId: null, sourceIp: null }]);
  const finish = (status: number, code: string | null, organizationId: string | null = null) => {
    const outcome = { status, code, projectId: null, organizationId, finishedAt: new Date() };
    return finishAudits(ledger, [{ key: key as AuditKey, ...outcome }]);
  };
  try {
    const result = await work();
    const { organization_id: organizationId } = result as { organization_id?: string };
    await finish(200, null, organizationId);
    return result;
  } catch (error) {
    // The row stays without an outcome when the ledger is what failed.
    const outcome = error instanceof AdminError ? finish(400, "ADMIN_REFUSED") : finish(500, "ADMIN_FAILED");
    await outcome.catch(() => undefined);
    throw error;
  }
}
