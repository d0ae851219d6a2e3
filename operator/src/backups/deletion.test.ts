import type { Backup, BackupStatus } from "@slipway/crds";
import { silentLogger } from "@slipway/process";
import { expect, test } from "vitest";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { eraseStored } from "./reconciler.ts";
import type { BackupStore } from "./store.ts";

const { signal } = new AbortController();

/** Removes a backup from its first call to its last. @returns what was said of it, and how often it was erased */
async function erase(phase: BackupStatus["phase"], there: boolean | undefined) {
  const status: BackupStatus = { observedGeneration: 1, phase, location: "s3://old/shop.dump" };
  const backup: Backup = {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Backup",
    metadata: { name: "shop-b1", namespace: "slipway-org-acme" },
    spec: { projectRef: { name: "shop" }, trigger: "manual", requestedAt: "2026-01-01T00:00:00Z" },
    status,
  };
  const events: string[] = [];
  let missing = 0;
  let erased = 0;
  const store: Pick<BackupStore, "has" | "erase"> = {
    has: async () => (erased > 0 ? false : there),
    erase: async () => {
      erased += 1;
      return undefined;
    },
  };
  const deps = {
    clock: new FakeClock(),
    log: silentLogger,
    metrics: {
      missing: () => {
        missing += 1;
      },
    },
    store: () => store as BackupStore,
  };
  const event = (_type: string, reason: string) => void events.push(reason);
  const waited = await eraseStored(backup, { event, signal, status }, deps);
  const done = await eraseStored(backup, { event, signal, status }, deps);
  // As after a restart before the finalizer fell.
  await eraseStored(backup, { event, signal, status }, deps);
  return { waited: waited !== undefined, done, events, missing, erased };
}

// Shows: docs/backups.md#how-it-works: event `DataMissing`, `slipway_backups_missing_total` and an
test("a good backup that is not where it was stored is reported, once, and its removal continues", async () => {
  expect(await erase("succeeded", false)).toEqual({
    waited: true,
    done: undefined,
    events: ["DataMissing"],
    missing: 1,
    erased: 2,
  });
});

test.each([
  ["is there", "succeeded", true],
  ["cannot be looked for", "succeeded", undefined],
  ["has failed, and is not there", "failed", false],
] as const)("one that %s is removed without a word", async (_what, phase, there) => {
  expect(await erase(phase, there)).toMatchObject({ events: [], missing: 0, erased: 2 });
});
