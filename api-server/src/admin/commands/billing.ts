import { type KubeClient, resources } from "@slipway/controller-runtime";
import { organizationNamespace, type Project, statusState } from "@slipway/crds";
import {
  AUDIT_APPLICATION,
  type AuditedObject,
  AuditRunningError,
  AuditTimeoutError,
  auditBilling,
  auditObjects,
  type BillingFinding,
  connectLedger,
  listOrganizations,
} from "@slipway/ledger";
import { projectResource } from "../../resources.ts";
import { type AdminContext, AdminError } from "../context.ts";
import { requireOrganization } from "../credentials.ts";

/** Time of one statement: of a large organization it may take minutes. */
const STATEMENT_TIMEOUT_MS = 600_000;

export interface AuditOptions {
  organization?: string;
  from?: string;
  to?: string;
  head?: string;
  cluster?: boolean;
}

/** What an audit of billing found. `clean` is whether that is nothing. */
export async function auditBillingCommand(
  context: AdminContext,
  { organization, from, to, head, cluster }: AuditOptions,
) {
  const began = performance.now();
  const range = { from: dayOf(from), to: dayOf(to) };
  if (range.from && range.to && range.from > range.to) {
    throw new AdminError("--from must not be after --to");
  }
  if (head !== undefined && !/^[0-9a-f]{64}$/.test(head)) {
    throw new AdminError("--head must be the hash of a seal: 64 hexadecimal digits");
  }
  if (organization !== undefined) {
    await requireOrganization(context, organization);
  }
  const ledger = connectLedger({
    url: context.env.SLIPWAY_LEDGER_URL ?? "",
    applicationName: AUDIT_APPLICATION,
    // Another one ends an audit that takes too long.
    maxConnections: 2,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  try {
    const { findings, seals, ...counts } = await auditBilling(ledger, {
      organizationId: organization,
      ...range,
      head,
      timeoutMs: context.timeoutMs,
      onProgress: context.progress,
    }).catch((error: unknown) => {
      throw refusalOf(error);
    });
    const objects = cluster
      ? await auditCluster(context, { organization, began }, findings.report).catch((error: unknown) => {
          throw refusalOf(error);
        })
      : undefined;
    return {
      clean: findings.total === 0,
      organizations: counts.organizations,
      plan_charges: counts.planCharges,
      invoices: counts.invoices,
      pending_adjustments: counts.pendingAdjustments,
      seals: seals.seals,
      chain_from: seals.chainFrom,
      sealed_until: seals.until ?? null,
      catching_up: seals.isCatchingUp,
      first_sealed_at: seals.firstAt ?? null,
      last_sealed_at: seals.lastAt ?? null,
      sealed_rows: seals.rows,
      retired_leaves: seals.retired,
      ...(objects === undefined ? {} : { objects }),
      head: seals.head ?? null,
      counts: Object.fromEntries(findings.counts),
      findings: findings.kept.map(findingView),
      more_findings: findings.total - findings.kept.length,
      seconds: Math.round((performance.now() - began) / 100) / 10,
    };
  } finally {
    await ledger.destroy();
  }
}

/** What an administrator can do about an audit that cannot run. */
function refusalOf(error: unknown): unknown {
  if (error instanceof AuditRunningError) {
    return new AdminError(error.message);
  }
  return error instanceof AuditTimeoutError
    ? new AdminError(
        `${error.message}, which is all that the admin server has for a command: run it by itself, with kubectl exec deploy/slipway-admin -c admin -- node api-server/src/admin/main.ts billing audit`,
      )
    : error;
}

/**
 * Compares what Projects have in their status with the ledger.
 * @param began when the command did, of whose time this has what is left
 * @returns how many there are
 * @throws AuditTimeoutError where that is over before an organization
 * @internal
 */
export async function auditCluster(
  context: Pick<AdminContext, "kube" | "ledger" | "progress" | "timeoutMs">,
  { organization, began }: { organization: string | undefined; began: number },
  report: (finding: BillingFinding) => void,
): Promise<number> {
  const kube = await context.kube();
  const ids =
    organization === undefined
      ? (await listOrganizations(context.ledger)).map(({ id }) => id)
      : [organization];
  let count = 0;
  const { timeoutMs = Number.POSITIVE_INFINITY } = context;
  for (const id of ids) {
    if (performance.now() - began > timeoutMs) {
      throw new AuditTimeoutError(timeoutMs);
    }
    const objects = await billedObjects(kube, id);
    count += objects.length;
    await auditObjects(context.ledger, id, objects, report);
    context.progress?.(`${id}: ${objects.length} objects`);
  }
  return count;
}

async function billedObjects(kube: KubeClient, organizationId: string): Promise<AuditedObject[]> {
  const namespace = organizationNamespace(organizationId);
  // Without it there is no right to list, and nothing is in it.
  if ((await kube.getOrUndefined(resources.namespaces, { name: namespace })) === undefined) {
    return [];
  }
  const projects = await kube.listAll<Project>(projectResource, { namespace });
  return projects.map(({ metadata, status }) => ({
    projectId: metadata.name,
    projectUid: metadata.uid ?? "",
    changes: (status?.billing?.changes ?? []).map(({ number, at, deleted, ...change }) => ({
      number,
      at: new Date(at),
      state: deleted ? undefined : statusState(change),
    })),
  }));
}

const findingView = ({ code, organizationId, key, expected, found }: BillingFinding) => ({
  code,
  organization_id: organizationId ?? null,
  key,
  expected: expected ?? null,
  found: found ?? null,
});

/** @throws AdminError when it is no date of the calendar */
function dayOf(text: string | undefined): Date | undefined {
  if (text === undefined) {
    return undefined;
  }
  const day = new Date(`${text}T00:00:00Z`);
  if (
    !/^\d{4}-\d{2}-\d{2}$/.test(text) ||
    Number.isNaN(day.getTime()) ||
    !day.toISOString().startsWith(text)
  ) {
    throw new AdminError(`a date has the form 2026-01-31, not ${text}`);
  }
  return day;
}
