/** What is measured of backups of the platform itself, as their jobs report it in a ConfigMap that is mounted here. */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  failedPlatformBackup,
  platformBackupKeys,
  storedPlatformBackup,
  verifiedPlatformBackup,
} from "@slipway/crds";
import { Gauge, type Registry } from "prom-client";
import type { z } from "zod";

/**
 * Registers the metrics, which are read when they are scraped. What has not happened yet is 0.
 * @param folder the mounted ConfigMap
 */
export function registerPlatformBackupMetrics(registry: Registry, folder: string): void {
  const registers = [registry];
  const read = async <T extends z.ZodType>(schema: T, key: string): Promise<z.output<T> | undefined> => {
    // The first job creates the key; what an other release has written may be of another form.
    const text = await readFile(join(folder, key), "utf8").catch(() => undefined);
    return text === undefined ? undefined : schema.safeParse(parsed(text)).data;
  };
  const stored = () => read(storedPlatformBackup, platformBackupKeys.stored);
  const verified = () => read(verifiedPlatformBackup, platformBackupKeys.verified);
  const failed = (key: string) => read(failedPlatformBackup, key);
  const outcomes = (name: string, help: string, succeeded: () => Promise<At>, key: string) =>
    new Gauge({
      name,
      help,
      labelNames: ["outcome"],
      registers,
      async collect() {
        this.set({ outcome: "succeeded" }, secondsOf(await succeeded()));
        this.set({ outcome: "failed" }, secondsOf(await failed(key)));
      },
    });
  const value = (name: string, help: string, number: () => Promise<number | undefined>) =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        this.set((await number()) ?? 0);
      },
    });
  outcomes(
    "slipway_platform_backup_timestamp_seconds",
    "When the last backup of the platform was begun that succeeded, and when one failed last. 0 when none has.",
    stored,
    platformBackupKeys.notStored,
  );
  value(
    "slipway_platform_backup_bytes",
    "Size of the last backup of the platform.",
    async () => (await stored())?.bytes,
  );
  value(
    "slipway_platform_backup_seconds",
    "How long the last backup of the platform took.",
    async () => (await stored())?.seconds,
  );
  outcomes(
    "slipway_platform_backup_verification_timestamp_seconds",
    "When a restore test of the platform's newest backup succeeded last, and when one failed last. 0 when none has.",
    verified,
    platformBackupKeys.notVerified,
  );
  value(
    "slipway_platform_backup_verification_seconds",
    "How long the last restore test that succeeded took.",
    async () => (await verified())?.seconds,
  );
}

type At = { at: string } | undefined;

const secondsOf = (outcome: At): number => (outcome ? Date.parse(outcome.at) / 1_000 : 0);

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
