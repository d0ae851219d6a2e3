import { billedMinutes, billingCycle, jobRunName, runAmount } from "@slipway/crds";
import {
  connectLedger,
  ensurePartitions,
  type JobRunRow,
  type Ledger,
  listJobRuns,
  migrateToLatest,
  recordJobRuns,
  settleCycle,
  sumJobRuns,
} from "@slipway/ledger";
import { sql } from "kysely";
import { startPostgres } from "../kit/servers/postgresql.ts";

/**
 * How fast the ledger takes runs, with every commit on the disk, beside single-row inserts into a table without any of
 * what the ledger adds; and how fast it lists a project with a run in every minute of a month.
 * `node test/bench/job-ledger.ts [seconds]`
 */

/** What the design requires. */
const GOALS = { runsPerSecond: 2_000, readMs: 30 };
const BATCH = 500;
/** Concurrent batches; the operator's charge recorder sends one. */
const WRITERS = [1, 2] as const;
const MINUTES = 43_200;

const seconds = Number(process.argv[2] ?? 10);
const month = billingCycle(new Date(billingCycle(new Date()).startedAt.getTime() - 1)).startedAt;

/** The run of a project in a minute of the month. */
function run(project_id: string, minute: number): JobRunRow {
  const scheduled_at = new Date(month.getTime() + minute * 60_000);
  const started_at = new Date(scheduled_at.getTime() + 2_000);
  const finished_at = new Date(started_at.getTime() + ((minute * 7_919) % 55_000));
  const billed_minutes = billedMinutes(started_at, finished_at);
  return {
    organization_id: "bench",
    project_id,
    project_uid: "11111111-2222-3333-4444-555555555555",
    id: jobRunName(project_id, scheduled_at),
    trigger: "schedule",
    scheduled_at,
    started_at,
    finished_at,
    billed_until: finished_at,
    status: minute % 100 === 0 ? "failed" : "succeeded",
    billed_minutes,
    plan: "job-basic",
    price_per_minute: "0.35",
    amount: runAmount("0.35", billed_minutes),
    metrics: { status: "available", samples: 6, averageCores: "0.12", peakBytes: "73400320" },
  };
}

/** Counts what `write` takes until the time is over. @returns rows a second */
async function rate(writers: number, write: (step: number) => Promise<number>): Promise<number> {
  const start = performance.now();
  let steps = 0;
  let rows = 0;
  const loop = async () => {
    while (performance.now() - start < seconds * 1_000) {
      steps += 1;
      rows += await write(steps);
    }
  };
  await Promise.all(Array.from({ length: writers }, loop));
  return rows / ((performance.now() - start) / 1_000);
}

/** A batch as the charge recorder sends it: 500 projects' runs of one minute. */
async function recordMinute(ledger: Ledger, prefix: string, minute: number): Promise<number> {
  const rows = Array.from({ length: BATCH }, (_, index) => run(`${prefix}${index}`, minute));
  const answers = await recordJobRuns(ledger, rows);
  if (answers.some(({ outcome }) => outcome !== "recorded")) {
    throw new Error("a run was not recorded");
  }
  return answers.length;
}

/** The same columns, a primary key, one row a statement, one after the other. */
async function insertPlain(ledger: Ledger, minute: number): Promise<number> {
  const row = run("plain", minute);
  await sql`
    insert into plain_runs values (${row.organization_id}, ${row.project_id}, ${row.project_uid}, ${row.id},
      ${row.trigger}, ${row.scheduled_at}, ${row.started_at}, ${row.finished_at}, ${row.billed_until}, ${row.status},
      ${row.billed_minutes}, ${row.plan}, ${row.price_per_minute}, ${row.amount}, ${JSON.stringify(row.metrics)})`.execute(
    ledger,
  );
  return 1;
}

/** Milliseconds of the slowest and the middle one of 20 calls. */
async function times(call: () => Promise<unknown>): Promise<{ median: number; worst: number }> {
  const taken: number[] = [];
  for (let round = 0; round < 20; round += 1) {
    const start = performance.now();
    await call();
    taken.push(performance.now() - start);
  }
  taken.sort((a, b) => a - b);
  return { median: taken[10] ?? 0, worst: taken[19] ?? 0 };
}

async function benchWrites(ledger: Ledger): Promise<boolean> {
  await sql`
    create table plain_runs (organization_id text, project_id text, project_uid text, id text, trigger text,
      scheduled_at timestamptz, started_at timestamptz, finished_at timestamptz, billed_until timestamptz, status text,
      billed_minutes integer, plan text, price_per_minute numeric, amount numeric, metrics jsonb,
      primary key (organization_id, id))`.execute(ledger);
  const plain = await rate(1, (step) => insertPlain(ledger, step));
  console.log(`  plain insert, a row each: ${plain.toFixed(0)} runs/s`);
  let best = 0;
  for (const writers of WRITERS) {
    const recorded = await rate(writers, (step) => recordMinute(ledger, `w${writers}-`, step));
    best = Math.max(best, recorded);
    console.log(
      `  recordJobRuns, ${BATCH} a batch, ${writers} concurrently: ${recorded.toFixed(0)} runs/s, ` +
        `${(recorded / plain).toFixed(1)} x the plain insert; goal ${GOALS.runsPerSecond} runs/s`,
    );
  }
  return best >= GOALS.runsPerSecond;
}

async function benchReads(ledger: Ledger): Promise<boolean> {
  const last = billingCycle(month).nextResetAt.getTime() - month.getTime();
  const count = Math.min(MINUTES, last / 60_000);
  for (let minute = 0; minute < count; minute += 1_000) {
    const size = Math.min(1_000, count - minute);
    await recordJobRuns(
      ledger,
      Array.from({ length: size }, (_, index) => run("minutely", minute + index)),
    );
  }
  const { startedAt: from, nextResetAt: to } = billingCycle(month);
  const cycle = { organizationId: "bench", projectId: "minutely", from, to };
  const reads: Record<string, () => Promise<unknown>> = {
    "first page": () => listJobRuns(ledger, { ...cycle, offset: 0, limit: 50 }),
    "page 400": () => listJobRuns(ledger, { ...cycle, offset: 19_950, limit: 50 }),
    "last page": () => listJobRuns(ledger, { ...cycle, offset: count - 50, limit: 50 }),
    "first page of failed": () => listJobRuns(ledger, { ...cycle, status: "failed", offset: 0, limit: 50 }),
    sums: () => sumJobRuns(ledger, cycle),
  };
  let good = true;
  for (const vacuumed of [false, true]) {
    if (vacuumed) {
      await sql`vacuum analyze job_runs`.execute(ledger);
    }
    console.log(`  of ${count} runs, ${vacuumed ? "after" : "before"} a vacuum (goal ${GOALS.readMs} ms):`);
    for (const [name, read] of Object.entries(reads)) {
      const { median, worst } = await times(read);
      good &&= median < GOALS.readMs;
      console.log(`    ${name}: ${median.toFixed(1)} ms, slowest ${worst.toFixed(1)} ms`);
    }
  }
  return good;
}

async function benchSettlement(ledger: Ledger): Promise<void> {
  const { rows } = await sql<{ count: string }>`select count(*) from charges`.execute(ledger);
  const start = performance.now();
  await settleCycle(ledger, month);
  const ms = performance.now() - start;
  console.log(`  settlement of one organization with ${rows[0]?.count} charges: ${ms.toFixed(0)} ms`);
}

const postgres = await startPostgres({ durable: true });
const ledger = connectLedger({ url: postgres.url, applicationName: "bench" });
try {
  await migrateToLatest(ledger);
  await ensurePartitions(ledger, month);
  const { rows } = await sql<{ fsync: string; synchronous_commit: string; server_version: string }>`
    select current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit,
      current_setting('server_version') as server_version`.execute(ledger);
  console.log(`PostgreSQL ${rows[0]?.server_version}, its own settings:`);
  console.log(`  fsync ${rows[0]?.fsync}, synchronous_commit ${rows[0]?.synchronous_commit}`);
  if (rows[0]?.fsync !== "on") {
    throw new Error("fsync is off");
  }
  const writes = await benchWrites(ledger);
  const reads = await benchReads(ledger);
  await benchSettlement(ledger);
  if (!writes || !reads) {
    console.error("a goal was missed");
    process.exitCode = 1;
  }
} finally {
  await ledger.destroy();
  await postgres.stop();
}
