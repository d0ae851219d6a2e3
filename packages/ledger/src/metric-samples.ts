import { type MetricsSnapshot, metricsSnapshot } from "@slipway/crds";
import { sql } from "kysely";
import type { Ledger } from "./connect.ts";

/** What names an instance of a database. Another project of the same id has another uid. */
export interface MetricInstance {
  organizationId: string;
  projectId: string;
  projectUid: string;
  /** Its pod. */
  instance: string;
}

/** What was read, and what is shown of it. */
export interface MetricSample {
  snapshot: MetricsSnapshot;
  /** What the next sample's rates are computed from: JSON that only the sampler knows, without any statement's text. */
  raw: unknown;
}

export interface MetricSampleRow extends MetricInstance, MetricSample {}

export interface StoredMetricSamples extends MetricInstance {
  newest: MetricSample;
  previous?: MetricSample;
}

/** Most samples of one statement. */
const MAX_BATCH = 500;

/**
 * Keeps samples: the newest of an instance takes the place of the one before, which takes that of the second. A sample that
 * is not newer than what is kept changes nothing, so a batch whose answer was lost is simply sent again. Of one instance a
 * batch may hold one sample.
 *
 * @returns how many rows changed
 * @throws when the database is away, or a batch holds two samples of an instance
 */
export async function recordMetricSamples(ledger: Ledger, rows: readonly MetricSampleRow[]): Promise<number> {
  let changed = 0;
  for (let start = 0; start < rows.length; start += MAX_BATCH) {
    changed += await record(ledger, rows.slice(start, start + MAX_BATCH));
  }
  return changed;
}

async function record(ledger: Ledger, rows: readonly MetricSampleRow[]): Promise<number> {
  const given = rows.map(({ organizationId, projectId, projectUid, instance, snapshot, raw }) => ({
    organization_id: organizationId,
    project_id: projectId,
    project_uid: projectUid,
    instance,
    observed_at: snapshot.observed_at,
    snapshot,
    raw,
  }));
  // Two processes lock the rows in one order. What is kept of another project of the same id is no previous sample.
  const { rows: changed } = await sql`
    insert into metric_samples as kept (organization_id, project_id, instance, project_uid, observed_at, snapshot, raw)
    select organization_id, project_id, instance, project_uid, observed_at, snapshot, raw
    from jsonb_populate_recordset(null::metric_samples, ${JSON.stringify(given)}::jsonb)
    order by organization_id, project_id, instance
    on conflict (organization_id, project_id, instance) do update set
      project_uid = excluded.project_uid,
      observed_at = excluded.observed_at,
      snapshot = excluded.snapshot,
      raw = excluded.raw,
      previous_observed_at = case when kept.project_uid = excluded.project_uid then kept.observed_at end,
      previous_snapshot = case when kept.project_uid = excluded.project_uid then kept.snapshot end,
      previous_raw = case when kept.project_uid = excluded.project_uid then kept.raw end
    where kept.observed_at < excluded.observed_at
    returning 1 as one`.execute(ledger);
  return changed.length;
}

/**
 * The newest valid sample of an instance, however old; undefined when there is none.
 * @throws when the database is away, or what is kept has no shape that this version knows
 */
export async function newestMetricSample(
  ledger: Ledger,
  { organizationId, projectId, projectUid, instance }: MetricInstance,
): Promise<MetricsSnapshot | undefined> {
  const { rows } = await sql<{ snapshot: unknown }>`
    select snapshot from metric_samples
    where organization_id = ${organizationId} and project_id = ${projectId} and instance = ${instance}
      and project_uid = ${projectUid}`.execute(ledger);
  return rows[0] && metricsSnapshot.parse(rows[0].snapshot);
}

interface Row {
  organization_id: string;
  project_id: string;
  project_uid: string;
  instance: string;
  snapshot: unknown;
  raw: unknown;
  previous_snapshot: unknown;
  previous_raw: unknown;
}

/**
 * All that is kept: what a sampler continues from when it starts. A row whose shape this version does not know is left out:
 * the next sample takes its place.
 */
export async function listMetricSamples(ledger: Ledger): Promise<StoredMetricSamples[]> {
  const { rows } = await sql<Row>`
    select organization_id, project_id, project_uid, instance, snapshot, raw, previous_snapshot, previous_raw
    from metric_samples order by organization_id, project_id, instance`.execute(ledger);
  return rows.flatMap((row) => {
    const newest = sampleOf(row.snapshot, row.raw);
    if (!newest) {
      return [];
    }
    const previous = sampleOf(row.previous_snapshot, row.previous_raw);
    const { organization_id: organizationId, project_id: projectId, project_uid: projectUid, instance } = row;
    return [{ organizationId, projectId, projectUid, instance, newest, ...(previous ? { previous } : {}) }];
  });
}

function sampleOf(given: unknown, raw: unknown): MetricSample | undefined {
  const { success, data } = metricsSnapshot.safeParse(given);
  return success ? { snapshot: data, raw } : undefined;
}

/**
 * Forgets what was last observed before a moment: of deleted databases, and of instances that are no more.
 * @returns how many instances were forgotten
 */
export async function retireMetricSamples(ledger: Ledger, before: Date): Promise<number> {
  const { rows } = await sql`
    delete from metric_samples where observed_at < ${before} returning 1 as one`.execute(ledger);
  return rows.length;
}
