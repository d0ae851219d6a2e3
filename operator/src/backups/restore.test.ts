import { Store } from "@slipway/controller-runtime";
import type { Backup, DatabaseStatus } from "@slipway/crds";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { databaseOf, exampleDatabase } from "../../../test/kit/databases/examples.ts";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import type { JobState } from "./job-state.ts";
import { createBackupMetrics } from "./metrics.ts";
import { Restorer } from "./restore.ts";
import { parseBackupSettings } from "./settings.ts";
import type { BackupWork } from "./work.ts";

const contents = { tables: 1, rows: 7 };
const project = exampleDatabase({ version: "17", database: { restoreFrom: { backup: "shop-b1" } } });
const backup = {
  apiVersion: "slipway.dev/v1alpha1",
  kind: "Backup",
  metadata: { name: "shop-b1", namespace: project.metadata.namespace, uid: "b1", resourceVersion: "1" },
  status: { phase: "succeeded", engine: "postgresql", version: "17", source: {}, contents },
} as unknown as Backup;

/** A restore with a Job whose state the test sets. */
function restoring() {
  const registry = new Registry();
  const world = { state: { state: "running" } as JobState };
  const backups = new Store<Backup>();
  backups.replace([backup], "1");
  const work = { follow: async () => world.state, end: async () => {} };
  const restorer = new Restorer({
    clock: new FakeClock("2026-03-01T00:00:00Z"),
    backups,
    settings: () => parseBackupSettings("image: registry.example/slipway@sha256:1"),
    work: work as unknown as BackupWork,
    metrics: createBackupMetrics(registry),
  });
  const status: DatabaseStatus = {};
  const look = async (state: JobState) => {
    world.state = state;
    const pending = await restorer.restore(
      project,
      databaseOf({ project }),
      status,
      AbortSignal.timeout(5_000),
    );
    return pending?.missing.reason;
  };
  const counted = async () => {
    const metric = await registry.getSingleMetric("slipway_backup_restores_total")?.get();
    const of = (outcome: string) => metric?.values.find(({ labels }) => labels.outcome === outcome)?.value;
    return [of("succeeded"), of("failed")];
  };
  return { look, counted, status };
}

const failed: JobState = { state: "failed", reason: "LoadFailed", message: "No." };
const loaded = (rows: number): JobState => ({
  state: "succeeded",
  result: { ok: true, sizeBytes: 1, sha256: "x", contents: { ...contents, rows } },
});

test("a try that has failed is counted once, however often it is observed, and the next one separately", async () => {
  const { look, counted, status } = restoring();
  expect(await look({ state: "running" })).toBe("Restoring");
  expect(await counted()).toEqual([0, 0]);
  for (let i = 0; i < 3; i += 1) {
    expect(await look(failed)).toBe("RestoreFailed");
  }
  expect(await counted()).toEqual([0, 1]);
  // Its Job is taken away after a while, and made again.
  await look({ state: "running" });
  expect(await look(loaded(6))).toBe("RestoreFailed");
  expect(await counted()).toEqual([0, 2]);
  await look({ state: "running" });
  expect(await look(loaded(7))).toBeUndefined();
  expect(await counted()).toEqual([1, 2]);
  expect(status.restoredAt).toBeDefined();
});
