import { retireGitDeliveries } from "./build-triggers.ts";
import { retireBuilds } from "./builds.ts";
import { connectLedger } from "./connect.ts";
import { retireReservations } from "./domain-reservations.ts";
import { retireMetricSamples } from "./metric-samples.ts";
import { ensurePartitions } from "./partitions.ts";
import { ENDED_BUILDS_DAYS, retireEndedBuilds } from "./resource-charges.ts";
import { retireAuditLog, retireJobRuns, retireUnmatchedPayments } from "./retention.ts";

/** The retention job: `node packages/ledger/src/retire.ts`, once a day. Ends with 1 when something went wrong; the next one continues. */

const STATEMENT_TIMEOUT_MS = 300_000;
/** How long the samples of an instance are kept that nobody samples any more, in days. */
const SAMPLES_DAYS = 90;
/** How long a refund waits for its payment, in days: senders try again for days, and send again for a month on demand. */
const UNMATCHED_DAYS = 90;
/** How long a hook's delivery is known, in days: senders try again for hours at most. */
const DELIVERIES_DAYS = 7;

const url = process.env.SLIPWAY_LEDGER_URL;
if (!url) {
  console.error("ledger: SLIPWAY_LEDGER_URL is not set");
  process.exit(2);
}
/** How long the audit log is kept, in days: by whole months. */
const auditDays = Number(process.env.SLIPWAY_AUDIT_RETENTION_DAYS ?? 365);
if (!(auditDays >= 1)) {
  console.error("ledger: SLIPWAY_AUDIT_RETENTION_DAYS must be a number of days");
  process.exit(2);
}
const ledger = connectLedger({
  url,
  applicationName: "slipway-retire",
  maxConnections: 1,
  statementTimeoutMs: STATEMENT_TIMEOUT_MS,
});
try {
  const now = new Date();
  await ensurePartitions(ledger, now);
  console.log(`ledger: retired ${JSON.stringify(await retireJobRuns(ledger, now))}`);
  const before = (days: number) => new Date(now.getTime() - days * 86_400_000);
  const retired = {
    sampled_instances: await retireMetricSamples(ledger, before(SAMPLES_DAYS)),
    builds: await retireBuilds(ledger, now),
    ended_builds: await retireEndedBuilds(ledger, now),
    audit_log: await retireAuditLog(ledger, before(auditDays)),
    domain_reservations: await retireReservations(ledger, now),
    unmatched_payments: await retireUnmatchedPayments(ledger, before(UNMATCHED_DAYS)),
    git_deliveries: await retireGitDeliveries(ledger, before(DELIVERIES_DAYS)),
  };
  console.log(`ledger: retired ${JSON.stringify(retired)}`);
  if (retired.ended_builds > 0) {
    console.warn(
      `ledger: ${retired.ended_builds} builds ended ${ENDED_BUILDS_DAYS} days ago and were not charged`,
    );
  }
} catch (error) {
  console.error("ledger: retention failed:", error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await ledger.destroy();
}
