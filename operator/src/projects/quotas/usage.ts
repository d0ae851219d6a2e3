/**
 * Reconciles the ledger's account of what organizations have: objects written by kubectl or by an earlier version are added,
 * and deleted ones are removed. The API reserves before it writes, so recent reservations are kept.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { KubeClient, Store } from "@slipway/controller-runtime";
import { organizationOfNamespace, type Project } from "@slipway/crds";
import { type Ledger, listUsage, type OrganizationUsage, recordUsage, releaseUsage } from "@slipway/ledger";
import type { Logger } from "@slipway/process";
import { isCountedSecret, recordBytes, recordedBytes } from "../secrets.ts";

const PERIOD_MS = 60_000;
/** Most Secrets that are read in one comparison, one request each: an upgrade may find thousands. */
const READ_AT_ONCE = 100;
/** A creation reserves before it writes the project, and has that long for it. */
const IDLE_SECONDS = 120;

/** The ledger's account. Each call may throw when the ledger is away. */
export interface UsageLedger {
  list(): Promise<(OrganizationUsage & { idleSeconds: number })[]>;
  record(found: readonly OrganizationUsage[]): Promise<void>;
  release(deleted: readonly OrganizationUsage[], idleSeconds: number): Promise<void>;
}

/** The real one. */
export const ledgerUsage = (ledger: Ledger): UsageLedger => ({
  list: () => listUsage(ledger),
  record: (found) => recordUsage(ledger, found),
  release: (deleted, idleSeconds) => releaseUsage(ledger, deleted, idleSeconds),
});

export interface UsageOptions {
  ledger: UsageLedger;
  projects: Store<Project>;
  /** Secrets of organizations' namespaces, without their data. */
  secrets: Store;
  /** Reads a Secret of variables without a note of its bytes, and notes them. */
  client: KubeClient;
  log: Logger;
}

/** Compares every minute until the signal aborts. */
export async function runUsageReconciler(options: UsageOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await reconcileUsage(options, signal).catch((error: unknown) => {
      if (!signal.aborted) {
        options.log.warn({ err: error }, "what organizations have cannot be compared");
      }
    });
    await sleep(PERIOD_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** Compares once. Nothing is written when the ledger has what exists. */
export async function reconcileUsage(
  options: UsageOptions,
  signal: AbortSignal,
  idleSeconds = IDLE_SECONDS,
): Promise<void> {
  const { ledger, projects, secrets } = options;
  if (!projects.hasSynced || !secrets.hasSynced) {
    return;
  }
  await recordMissingBytes(options, signal);
  // Bytes that were recorded just now are observed by the next comparison.
  const rows = await ledger.list();
  const there = [...found(projects), ...foundVariables(secrets)];
  const { missing, deleted } = difference(rows, there, secretNames(secrets), idleSeconds);
  if (missing.length > 0) {
    await ledger.record(missing);
  }
  if (deleted.length > 0) {
    await ledger.release(deleted, idleSeconds);
  }
}

/** Notes the bytes of Secrets of variables that have no note. One that cannot be read keeps none of the others. */
async function recordMissingBytes(
  { secrets, client, log }: UsageOptions,
  signal: AbortSignal,
): Promise<void> {
  const unnoted = secrets
    .list()
    .filter((secret) => isCountedSecret(secret) && recordedBytes(secret) === undefined);
  const failures: unknown[] = [];
  for (const secret of unnoted.slice(0, READ_AT_ONCE)) {
    await recordBytes(client, secret, signal).catch((error: unknown) => failures.push(error));
    signal.throwIfAborted();
  }
  if (failures.length > 0) {
    const [err] = failures;
    log.warn(
      { err, secrets: failures.length },
      "bytes of variables cannot be noted; tried again in a minute",
    );
  }
}

/**
 * What the ledger lacks or has otherwise, and what it has that is not there. Of a Secret of variables whose bytes are not noted
 * only that it is deleted is known. Pure.
 */
export function difference(
  rows: readonly (OrganizationUsage & { idleSeconds: number })[],
  there: readonly OrganizationUsage[],
  secrets: ReadonlySet<string>,
  idleSeconds: number,
): { missing: OrganizationUsage[]; deleted: OrganizationUsage[] } {
  const known = new Map(rows.map((row) => [keyOf(row), row]));
  const present = new Set(there.map(keyOf));
  const missing = there.filter((one) => {
    const row = known.get(keyOf(one));
    return row === undefined || (row.amount !== one.amount && row.idleSeconds >= idleSeconds);
  });
  const isThere = (row: OrganizationUsage): boolean =>
    row.kind === "variableBytes" ? secrets.has(`${row.organizationId}/${row.name}`) : present.has(keyOf(row));
  const deleted = rows.filter((row) => row.idleSeconds >= idleSeconds && !isThere(row));
  return { missing, deleted };
}

function found(projects: Store<Project>): OrganizationUsage[] {
  return projects.list().flatMap(({ metadata, spec }) => {
    const organizationId = organizationOfNamespace(metadata.namespace ?? "");
    if (organizationId === undefined) {
      return [];
    }
    const identity = { organizationId, name: metadata.name };
    const domains = spec.customDomains?.length ?? 0;
    return [
      { ...identity, kind: "projects" as const, amount: 1 },
      ...(domains > 0 ? [{ ...identity, kind: "customDomains" as const, amount: domains }] : []),
    ];
  });
}

function foundVariables(secrets: Store): OrganizationUsage[] {
  return secrets.list().flatMap((secret) => {
    const organizationId = organizationOfNamespace(secret.metadata?.namespace ?? "");
    const amount = recordedBytes(secret);
    const name = secret.metadata?.name;
    if (organizationId === undefined || amount === undefined || name === undefined) {
      return [];
    }
    return isCountedSecret(secret) ? [{ organizationId, kind: "variableBytes" as const, name, amount }] : [];
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
