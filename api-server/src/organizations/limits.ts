import { isForbidden } from "@slipway/controller-runtime";
import type { Catalog, OrganizationLimits } from "@slipway/crds";
import { type Ledger, releaseUsage, reserveUsage, type Usage } from "@slipway/ledger";
import { failures } from "../errors/catalog.ts";
import type { Failure } from "../errors/failure.ts";
import { withLedgerErrors } from "../ledger/availability.ts";

/**
 * Ceilings of an organization, paused projects included. Projects, custom domains and bytes of variables are reserved in
 * the ledger before the cluster is written. Projects, Git connections, variable groups and backups are counted by the namespace's
 * ResourceQuota too, which is as atomic, and which applies to kubectl, too.
 */
export interface UsageBook {
  /**
   * Reserves all of it or nothing.
   * @throws Failure 409 with the ceiling's code; 503 when the ledger is unavailable
   */
  reserve(organizationId: string, wanted: readonly Usage[]): Promise<void>;
  /** Releases what a failed operation reserved, or what is deleted. Never throws: the operator releases the rest. */
  release(organizationId: string, released: readonly Pick<Usage, "kind" | "name">[]): Promise<void>;
}

/** The book in the ledger, by the catalog's limits as they are then. */
export function ledgerUsage(ledger: Ledger, catalog: { readonly current: Catalog }): UsageBook {
  return {
    reserve: async (organizationId, wanted) => {
      if (wanted.length === 0) {
        return;
      }
      const limits = catalog.current.organizationLimits;
      const answer = await withLedgerErrors(() => reserveUsage(ledger, organizationId, wanted, limits));
      if (!answer.reserved) {
        throw failures.organizationLimitReached(answer.kind, answer.limit);
      }
    },
    release: (organizationId, released) =>
      releaseUsage(
        ledger,
        released.map((one) => ({ organizationId, ...one })),
      ).catch(() => undefined),
  };
}

/** What a ResourceQuota of an organization's namespace counts, by the limit that it is for. */
const COUNTED = {
  projects: "count/projects.slipway.dev",
  gitConnections: "count/gitconnections.slipway.dev",
  variableGroups: "count/variablegroups.slipway.dev",
  logDrains: "count/logdrains.slipway.dev",
  backups: "count/backups.slipway.dev",
} as const satisfies Partial<Record<keyof OrganizationLimits, string>>;

/** The failure for an error of the apiserver that the namespace's ResourceQuota caused; undefined for any other. Pure. */
export function resourceQuotaFailure(error: unknown): Failure | undefined {
  if (!isForbidden(error)) {
    return undefined;
  }
  const { message } = error;
  // Of a new namespace, or a new kind, nothing is counted yet: the quota controller does it within seconds.
  if (message.includes("status unknown for quota: ")) {
    return failures.organizationRuntimeUnavailable();
  }
  const limited = /exceeded quota: .*limited: (\S+)/.exec(message)?.[1] ?? "";
  for (const [what, counted] of Object.entries(COUNTED) as [keyof typeof COUNTED, string][]) {
    const limit = limited.split(",").find((one) => one.startsWith(`${counted}=`));
    if (limit !== undefined) {
      return failures.organizationLimitReached(what, Number(limit.slice(counted.length + 1)));
    }
  }
  return undefined;
}
