/**
 * Keeps the ledger's account of what organizations have true: what kubectl wrote is added, and what is gone is removed. The API
 * reserves before it writes, so what was reserved lately is left alone.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { organizationOfNamespace, type Project } from "@slipway/crds";
import type { Store } from "@slipway/kube";
import { type Ledger, listUsage, type OrganizationUsage, recordUsage, releaseUsage } from "@slipway/ledger";
import type { Logger } from "../runtime/logger.ts";

const PERIOD_MS = 60_000;
/** A creation reserves before it writes the project, and has that long for it. */
const IDLE_SECONDS = 120;

/** The ledger's account. Each call may throw when the ledger is away. */
export interface UsageLedger {
  list(): Promise<(OrganizationUsage & { idleSeconds: number })[]>;
  record(found: readonly OrganizationUsage[]): Promise<void>;
  release(gone: readonly OrganizationUsage[], idleSeconds: number): Promise<void>;
}

/** The real one. */
export const ledgerUsage = (ledger: Ledger): UsageLedger => ({
  list: () => listUsage(ledger),
  record: (found) => recordUsage(ledger, found),
  release: (gone, idleSeconds) => releaseUsage(ledger, gone, idleSeconds),
});

export interface UsageOptions {
  ledger: UsageLedger;
  projects: Store<Project>;
  /** Secrets with the project label. */
  secrets: Store;
  log: Logger;
}

/** Compares every minute until the signal aborts. */
export async function runUsageKeeper(options: UsageOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await keepUsage(options).catch((error: unknown) => {
      if (!signal.aborted) options.log.warn({ err: error }, "what organizations have cannot be compared");
    });
    await sleep(PERIOD_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** Compares once. Nothing is written when the ledger has what is there. */
export async function keepUsage(
  { ledger, projects, secrets }: UsageOptions,
  idleSeconds = IDLE_SECONDS,
): Promise<void> {
  if (!projects.hasSynced || !secrets.hasSynced) return;
  const rows = await ledger.list();
  const { missing, gone } = difference(rows, found(projects), secretNames(secrets), idleSeconds);
  if (missing.length > 0) await ledger.record(missing);
  if (gone.length > 0) await ledger.release(gone, idleSeconds);
}

/**
 * What the ledger lacks or has otherwise, and what it has that is not there. Bytes are the API's to tell: of Secrets only that
 * one is gone is known here. Pure.
 */
export function difference(
  rows: readonly (OrganizationUsage & { idleSeconds: number })[],
  there: readonly OrganizationUsage[],
  secrets: ReadonlySet<string>,
  idleSeconds: number,
): { missing: OrganizationUsage[]; gone: OrganizationUsage[] } {
  const known = new Map(rows.map((row) => [keyOf(row), row]));
  const present = new Set(there.map(keyOf));
  const missing = there.filter((one) => {
    const row = known.get(keyOf(one));
    return row === undefined || (row.amount !== one.amount && row.idleSeconds >= idleSeconds);
  });
  const isThere = (row: OrganizationUsage): boolean =>
    row.kind === "variableBytes" ? secrets.has(`${row.organizationId}/${row.name}`) : present.has(keyOf(row));
  const gone = rows.filter((row) => row.idleSeconds >= idleSeconds && !isThere(row));
  return { missing, gone };
}

function found(projects: Store<Project>): OrganizationUsage[] {
  return projects.list().flatMap(({ metadata, spec }) => {
    const organizationId = organizationOfNamespace(metadata.namespace ?? "");
    if (organizationId === undefined) return [];
    const identity = { organizationId, name: metadata.name };
    const domains = spec.customDomains?.length ?? 0;
    return [
      { ...identity, kind: "projects" as const, amount: 1 },
      ...(domains > 0 ? [{ ...identity, kind: "customDomains" as const, amount: domains }] : []),
    ];
  });
}

function secretNames(secrets: Store): Set<string> {
  const names = secrets
    .list()
    .map(({ metadata }) => `${organizationOfNamespace(metadata?.namespace ?? "")}/${metadata?.name}`);
  return new Set(names);
}

const keyOf = ({ organizationId, kind, name }: OrganizationUsage): string =>
  `${organizationId}/${kind}/${name}`;
