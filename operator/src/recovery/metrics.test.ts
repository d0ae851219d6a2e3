import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { afterAll, expect, test } from "vitest";
import { registerPlatformBackupMetrics } from "./metrics.ts";

const folder = await mkdtemp(join(tmpdir(), "platform-backup-"));
afterAll(() => rm(folder, { recursive: true }));

const registry = new Registry();
registerPlatformBackupMetrics(registry, folder);
const scrape = async () =>
  (await registry.metrics())
    .split("\n")
    .filter((line) => line.startsWith("slipway_"))
    .map((line) => line.replace("slipway_platform_backup_", ""));

test("what has not happened is 0, and so is what cannot be read", async () => {
  const nothing = [
    'timestamp_seconds{outcome="succeeded"} 0',
    'timestamp_seconds{outcome="failed"} 0',
    "bytes 0",
    "seconds 0",
    'verification_timestamp_seconds{outcome="succeeded"} 0',
    'verification_timestamp_seconds{outcome="failed"} 0',
    "verification_seconds 0",
  ];
  expect(await scrape()).toEqual(nothing);
  await writeFile(join(folder, "backup.json"), "{");
  await writeFile(join(folder, "verification.json"), '{"of":"another release"}');
  expect(await scrape()).toEqual(nothing);
});

test("the last outcomes are read at each scrape", async () => {
  const [name, objects] = ["platform-20260101T000000Z-0000000a.age", { Project: 2 }];
  const stored = {
    name,
    at: "2026-01-01T00:00:00.500Z",
    sha256: "0".repeat(64),
    bytes: 9,
    seconds: 1.5,
    objects,
  };
  const verified = { name, at: "2026-01-01T00:01:00Z", seconds: 2.5, objects, ledgerRows: { "public.a": 1 } };
  await writeFile(join(folder, "backup.json"), JSON.stringify(stored));
  await writeFile(join(folder, "verification.json"), JSON.stringify(verified));
  const failure = { at: "2026-01-01T00:02:00Z", message: "the ledger does not answer" };
  await writeFile(join(folder, "backup-failure.json"), JSON.stringify(failure));
  expect(await scrape()).toEqual([
    'timestamp_seconds{outcome="succeeded"} 1767225600.5',
    'timestamp_seconds{outcome="failed"} 1767225720',
    "bytes 9",
    "seconds 1.5",
    'verification_timestamp_seconds{outcome="succeeded"} 1767225660',
    'verification_timestamp_seconds{outcome="failed"} 0',
    "verification_seconds 2.5",
  ]);
});
