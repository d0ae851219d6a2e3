/** What the chart's CronJobs run: a backup to a bucket, and the test of the newest one. */

import { KubeClient, loadClusterConfig } from "@slipway/controller-runtime";
import { PLATFORM_BACKUP, PLATFORM_VERIFICATION } from "@slipway/crds";
import { type Environment, parseSettings } from "@slipway/process";
import { openLocation } from "../archive/location.ts";
import { backUp, removeExpired } from "../backup.ts";
import { readIdentity } from "../identity.ts";
import type { Installation } from "../installation.ts";
import type { Report } from "../report.ts";
import { verify } from "../verify.ts";
import { lastStored, type OutcomeKey, recordEvent, recordOutcome } from "./outcome.ts";
import { backupVariables, verificationVariables } from "./settings.ts";
import { dumpFrom } from "./sidecar.ts";

/** Backs up, and deletes what has expired. @throws Error that is recorded, too */
export async function runBackup(environment: Environment, report: Report): Promise<void> {
  const settings = parseSettings(backupVariables, environment);
  const outcome = { done: "stored", failed: "notStored", cronJob: PLATFORM_BACKUP } as const;
  await recorded(settings.SLIPWAY_NAMESPACE, outcome, async (installation, seconds) => {
    const to = await openLocation(settings.SLIPWAY_PLATFORM_BACKUP_PLACE, environment);
    const dump = () => dumpFrom(settings.SLIPWAY_RECOVERY_DIR);
    const recipients = settings.SLIPWAY_PLATFORM_BACKUP_RECIPIENTS;
    const {
      name,
      createdAt: at,
      sha256,
      bytes,
      objects,
    } = await backUp(installation, to, recipients, report, dump);
    const value = { name, at, sha256, bytes, seconds: seconds(), objects };
    await recordOutcome(installation, "stored", value);
    report("expired backups");
    const retention = {
      days: settings.SLIPWAY_PLATFORM_BACKUP_RETENTION_DAYS,
      keepAtLeast: settings.SLIPWAY_PLATFORM_BACKUP_KEEP_AT_LEAST,
    };
    const removed = await removeExpired(to.storage, retention, new Date());
    report("end");
    return `${name}: ${bytes} bytes in ${Math.ceil(value.seconds)} s; ${removed.length} expired ones deleted`;
  });
}

/** Restores the newest backup for a test. @throws Error that is recorded, too */
export async function runVerification(environment: Environment, report: Report): Promise<void> {
  const settings = parseSettings(verificationVariables, environment);
  const outcome = { done: "verified", failed: "notVerified", cronJob: PLATFORM_VERIFICATION } as const;
  await recorded(settings.SLIPWAY_NAMESPACE, outcome, async (installation, seconds) => {
    const verified = await verify(
      installation,
      {
        from: await openLocation(settings.SLIPWAY_PLATFORM_BACKUP_PLACE, environment),
        identity: await readIdentity(settings.SLIPWAY_PLATFORM_IDENTITY_FILE),
        stored: await lastStored(installation),
        namespace: settings.SLIPWAY_PLATFORM_VERIFICATION_NAMESPACE,
        scratch: settings.SLIPWAY_RECOVERY_DIR,
      },
      report,
    );
    const value = { ...verified, at: new Date().toISOString(), seconds: seconds() };
    await recordOutcome(installation, "verified", value);
    report("end");
    const rows = Object.values(verified.ledgerRows).reduce((sum, some) => sum + some, 0);
    const objects = Object.values(verified.objects).reduce((sum, some) => sum + some, 0);
    return `${verified.name}: ${objects} objects, ${rows} rows of the ledger`;
  });
}

/** Does the work of a job, and reports how it ended. */
async function recorded(
  namespace: string,
  { done, failed, cronJob }: { done: OutcomeKey; failed: OutcomeKey; cronJob: string },
  work: (installation: Installation, seconds: () => number) => Promise<string>,
): Promise<void> {
  const began = performance.now();
  const client = KubeClient.fromConfig(await loadClusterConfig(), { userAgent: "slipway-recovery" });
  const installation = { client, namespace };
  const reason = done === "stored" ? "Backup" : "Verification";
  try {
    const note = await work(installation, () => (performance.now() - began) / 1_000);
    await recordEvent(installation, cronJob, "Normal", `${reason}Succeeded`, note);
  } catch (error) {
    const { message } = error as Error;
    const value = { at: new Date().toISOString(), message: message.slice(0, 1_000) };
    // What has failed is reported by the exit code, too, when the apiserver does not answer.
    await Promise.allSettled([
      recordOutcome(installation, failed, value),
      recordEvent(installation, cronJob, "Warning", `${reason}Failed`, message),
    ]);
    throw error;
  } finally {
    await client.close();
  }
}
