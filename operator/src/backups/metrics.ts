/** What is measured of backups. No label has values without bound. */

import type { Store } from "@slipway/controller-runtime";
import { type Backup, isDatabaseType, type Project } from "@slipway/crds";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";

export type BackupMetrics = ReturnType<typeof createBackupMetrics>;

const TRIGGERS = ["schedule", "manual"] as const;
const SECONDS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 14_400, 21_600];
/** Hours since the newest backup, by which databases are counted. */
const AGES = [1, 25, 49, 169, 745] as const;

/** Registers the metrics. @throws Error when it is called twice for one registry */
export function createBackupMetrics(registry: Registry) {
  const registers = [registry];
  const total = new Counter({
    name: "slipway_backups_total",
    help: "Backups that have ended, by what asked for them and outcome.",
    labelNames: ["trigger", "outcome"],
    registers,
  });
  const verified = new Counter({
    name: "slipway_backup_verifications_total",
    help: "Restore tests that have ended, by outcome.",
    labelNames: ["outcome"],
    registers,
  });
  const restored = new Counter({
    name: "slipway_backup_restores_total",
    help: "Restores into new projects that have ended, by outcome.",
    labelNames: ["outcome"],
    registers,
  });
  const missing = new Counter({
    name: "slipway_backups_missing_total",
    help: "Good backups that were not where they had been stored when they were deleted.",
    registers,
  });
  for (const outcome of ["succeeded", "failed"]) {
    for (const trigger of TRIGGERS) {
      total.inc({ trigger, outcome }, 0);
    }
    verified.inc({ outcome }, 0);
    restored.inc({ outcome }, 0);
  }
  const duration = new Histogram({
    name: "slipway_backup_duration_seconds",
    help: "From the beginning of a backup to its end.",
    buckets: SECONDS,
    registers,
  });
  return {
    made(trigger: Backup["spec"]["trigger"], outcome: "succeeded" | "failed", seconds: number): void {
      total.inc({ trigger, outcome });
      if (outcome === "succeeded") {
        duration.observe(seconds);
      }
    },
    verified: (outcome: "succeeded" | "failed") => verified.inc({ outcome }),
    restored: (outcome: "succeeded" | "failed") => restored.inc({ outcome }),
    missing: () => missing.inc(),
  };
}

/**
 * Registers what is read from the stores when metrics are scraped: databases that should be backed up, by the age of their
 * newest backup, each in every class that it is younger than.
 * @param isDue whether a project has a schedule of backups
 */
export function registerBackupGauges(
  registry: Registry,
  stores: { projects: Store<Project>; backups: Store<Backup> },
  isDue: (project: Project) => boolean,
  now: () => Date,
): void {
  const registers = [registry];
  new Gauge({
    name: "slipway_databases_by_backup_age",
    help: "Databases with a schedule of backups whose newest backup is at most so many hours old; +Inf counts all.",
    labelNames: ["hours"],
    registers,
    collect() {
      this.reset();
      const newest = newestByProject(stores.backups.list());
      const ages = stores.projects
        .list()
        .filter(
          ({ spec, metadata }) => isDatabaseType(spec.type) && !spec.paused && !metadata.deletionTimestamp,
        )
        .filter(isDue)
        // A database that has none is as old as itself.
        .map(({ metadata }) => {
          const known = newest.get(`${metadata.namespace}/${metadata.name}`);
          return (now().getTime() - (known ?? Date.parse(metadata.creationTimestamp ?? ""))) / 3_600_000;
        });
      for (const hours of AGES) {
        this.set({ hours: String(hours) }, ages.filter((age) => age <= hours).length);
      }
      this.set({ hours: "+Inf" }, ages.length);
    },
  });
  new Gauge({
    name: "slipway_backup_verifications_failing",
    help: "Backups whose newest restore test did not find all that is in them.",
    registers,
    collect() {
      const failing = ({ status }: Backup) =>
        status?.conditions?.some((one) => one.type === "Verified" && one.status === "False") ?? false;
      this.set(stores.backups.list().filter(failing).length);
    },
  });
}

/** When the newest backup of each project was stored, by `namespace/project`. */
function newestByProject(backups: readonly Backup[]): Map<string, number> {
  const newest = new Map<string, number>();
  for (const { metadata, spec, status } of backups) {
    if (status?.phase !== "succeeded") {
      continue;
    }
    const key = `${metadata.namespace}/${spec.projectRef.name}`;
    const at = Date.parse(status.startedAt ?? spec.requestedAt);
    newest.set(key, Math.max(newest.get(key) ?? 0, at));
  }
  return newest;
}
