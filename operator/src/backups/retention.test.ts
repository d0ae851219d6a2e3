import { ConditionSet, KubeClient, Store } from "@slipway/controller-runtime";
import type { Backup, BackupConditionCatalog, BackupStatus, Project } from "@slipway/crds";
import { silentLogger } from "@slipway/process";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { exampleDatabase } from "../../../test/kit/databases/examples.ts";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { backupResource } from "../resources.ts";
import type { JobState } from "./job-state.ts";
import { createBackupMetrics } from "./metrics.ts";
import { BackupRetention, differenceOf } from "./retention.ts";
import { BY_PROJECT, projectKey } from "./runner.ts";
import { parseBackupSettings } from "./settings.ts";
import type { BackupWork, WorkStores } from "./work.ts";

const DAY_MS = 24 * 60 * 60_000;
const now = "2026-03-10T00:00:00Z";
const { namespace = "", name: projectName } = exampleDatabase().metadata;
const signal = AbortSignal.timeout(30_000);

let api: FakeApiserver;
let client: KubeClient;
beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

/** A backup that ended at `requestedAt` and expires a day later. */
function backupOf(name: string, requestedAt: string, status: Partial<BackupStatus> = {}): Backup {
  return {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Backup",
    metadata: { name, namespace, uid: `uid-${name}`, resourceVersion: "1" },
    spec: {
      projectRef: { name: projectName },
      trigger: "schedule",
      requestedAt,
      expiresAt: new Date(Date.parse(requestedAt) + DAY_MS).toISOString(),
    },
    status: { observedGeneration: 1, phase: "succeeded", ...status },
  };
}

const create = (backup: Backup) =>
  api.etcd.create("slipway.dev/v1alpha1/backups", `${namespace}/${backup.metadata.name}`, { ...backup });

interface World {
  backups: Backup[];
  keepAtLeast?: number;
  project?: Project | undefined;
  verify?: JobState;
}

/** Reconciles the first backup. @returns what it waits for, its status, and which backups are left on the apiserver */
async function reconcile({ backups, keepAtLeast = 1, verify, ...world }: World) {
  backups.forEach(create);
  const live = await client.listAll<Backup>(backupResource, { namespace });
  const backup = live.find(({ metadata }) => metadata.name === backups[0]?.metadata.name);
  if (backup === undefined) {
    throw new Error("no backup");
  }
  const store = new Store<Backup>({ indexers: { [BY_PROJECT]: (each) => [projectKey(each)] } });
  store.replace(live, "1");
  const projects = new Store<Project>();
  const project = "project" in world ? world.project : exampleDatabase({ version: "17" });
  projects.replace(project ? [project] : [], "1");
  const registry = new Registry();
  const clock = new FakeClock(now);
  const settings = parseBackupSettings(
    `image: registry.example/slipway@sha256:1\nkeepAtLeast: ${keepAtLeast}`,
  );
  const retention = new BackupRetention({
    client,
    clock,
    projects,
    backups: store,
    stores: { jobs: new Store(), pods: new Store() } as unknown as WorkStores,
    images: () => ({ postgresql: { "17": "registry.example/postgresql@sha256:1" } }) as never,
    settings: () => settings,
    work: { follow: async () => verify, end: async () => {} } as unknown as BackupWork,
    metrics: createBackupMetrics(registry),
  });
  const status: BackupStatus = structuredClone(backup.status ?? { observedGeneration: 1 });
  const conditions = new ConditionSet<BackupConditionCatalog>([], { now: clock.now(), generation: 1 });
  const events: string[] = [];
  const result = await retention.reconcile(backup, {
    log: silentLogger,
    signal,
    status,
    conditions,
    event: (_type: string, reason: string) => void events.push(reason),
  } as never);
  const left = await client.listAll<Backup>(backupResource, { namespace });
  const verified = conditions.get("Verified");
  return { result, status, events, verified, left: left.map(({ metadata }) => metadata.name).sort() };
}

describe("a backup that has expired", () => {
  const old = backupOf("old", "2026-03-01T00:00:00Z");
  const newer = backupOf("newer", "2026-03-09T12:00:00Z");

  test("is deleted once enough newer ones have succeeded", async () => {
    expect((await reconcile({ backups: [old, newer] })).left).toEqual(["newer"]);
  });

  test("is kept while it is one of the newest that have to stay, and checked again later", async () => {
    const kept = await reconcile({ backups: [old, newer], keepAtLeast: 2 });
    expect(kept.left).toEqual(["newer", "old"]);
    expect(kept.result?.requeueAfterMs).toBe(600_000);
  });

  test.each([
    ["has failed", backupOf("newer", "2026-03-09T12:00:00Z", { phase: "failed" })],
    ["has not ended", backupOf("newer", "2026-03-09T12:00:00Z", { phase: "running" })],
    [
      "is being deleted",
      { ...newer, metadata: { ...newer.metadata, deletionTimestamp: "2026-03-09T13:00:00Z" } },
    ],
    ["is of another project", { ...newer, spec: { ...newer.spec, projectRef: { name: "other" } } }],
    ["is older", backupOf("newer", "2026-02-20T00:00:00Z")],
  ] as const)("is kept when the other backup %s", async (_what, other) => {
    expect((await reconcile({ backups: [old, other] })).left).toContain("old");
  });

  test("is deleted though it is the last one when its project no longer exists, or is being deleted", async () => {
    expect((await reconcile({ backups: [old], project: undefined })).left).toEqual([]);
    const project = exampleDatabase();
    project.metadata.deletionTimestamp = now;
    expect((await reconcile({ backups: [old], project })).left).toEqual([]);
  });

  test("is deleted when it has failed, whatever else exists", async () => {
    expect(
      (await reconcile({ backups: [{ ...old, status: { observedGeneration: 1, phase: "failed" } }] })).left,
    ).toEqual([]);
  });
});

describe("a backup that has not expired", () => {
  test("is kept, and reconciled again when it expires, a day later at the latest", async () => {
    const soon = backupOf("soon", "2026-03-09T06:00:00Z");
    expect(await reconcile({ backups: [soon] })).toMatchObject({
      left: ["soon"],
      result: { requeueAfterMs: DAY_MS / 4 },
    });
    const later = { ...soon, metadata: { ...soon.metadata, name: "later" } };
    later.spec = { ...soon.spec, expiresAt: "2026-06-01T00:00:00Z" };
    expect((await reconcile({ backups: [later] })).result?.requeueAfterMs).toBe(DAY_MS);
  });

  test("without an expiry is kept for ever", async () => {
    const { expiresAt: _, ...spec } = backupOf("kept", "2020-01-01T00:00:00Z").spec;
    const kept = { ...backupOf("kept", "2020-01-01T00:00:00Z"), spec };
    expect(await reconcile({ backups: [kept] })).toMatchObject({ left: ["kept"], result: undefined });
  });
});

describe("a verification that was requested", () => {
  const contents = { tables: 2, rows: 7, hash: "a" };
  const stored = backupOf("stored", "2026-03-09T06:00:00Z", {
    engine: "postgresql",
    version: "17",
    contents,
  });
  const requested = "2026-03-09T23:00:00Z";
  const backup = { ...stored, spec: { ...stored.spec, verifyRequestedAt: requested } };
  const loaded = (found: object): JobState =>
    ({ state: "succeeded", result: { ok: true, sizeBytes: 1, sha256: "x", contents: found } }) as JobState;

  test("is reported as under way while its Job runs", async () => {
    const { verified, status } = await reconcile({
      backups: [backup],
      verify: { state: "running" } as JobState,
    });
    expect(verified).toMatchObject({ status: "Unknown", reason: "Verifying" });
    expect(status.verifyFinishedFor).toBeUndefined();
  });

  test("succeeds when what was loaded equals what was stored", async () => {
    const { verified, status } = await reconcile({ backups: [backup], verify: loaded(contents) });
    expect(verified).toMatchObject({ status: "True", reason: "ContentsEqual" });
    expect(status).toMatchObject({
      verifyFinishedFor: requested,
      lastVerifiedAt: "2026-03-10T00:00:00.000Z",
    });
  });

  test("fails with an event when the contents differ, and names what differs", async () => {
    const { verified, status, events } = await reconcile({
      backups: [backup],
      verify: loaded({ ...contents, rows: 6 }),
    });
    expect(verified).toMatchObject({
      status: "False",
      reason: "ContentsDiffer",
      message: "7 rows were stored, and 6 were found.",
    });
    expect(events).toEqual(["ContentsDiffer"]);
    expect(status).toMatchObject({ verifyFinishedFor: requested });
    expect(status.lastVerifiedAt).toBeUndefined();
  });

  test("fails with the reason of its Job", async () => {
    const verify: JobState = { state: "failed", reason: "LoadFailed", message: "No." };
    const { verified, events } = await reconcile({ backups: [backup], verify });
    expect(verified).toMatchObject({ status: "False", reason: "LoadFailed", message: "No." });
    expect(events).toEqual(["LoadFailed"]);
  });

  test("fails when the platform has no image of the engine's version", async () => {
    const unknown = { ...backup, status: { ...backup.status, engine: "oracle" } } as unknown as Backup;
    const { verified } = await reconcile({ backups: [unknown] });
    expect(verified).toMatchObject({ status: "False", reason: "ImageMissing" });
  });

  test("of a backup that has failed is finished without a result", async () => {
    const failed: Backup = { ...backup, status: { observedGeneration: 1, phase: "failed" } };
    const { verified, status } = await reconcile({ backups: [failed] });
    expect(verified).toBeUndefined();
    expect(status.verifyFinishedFor).toBe(requested);
  });
});

test("contents are compared by number first, then by hash", () => {
  expect(differenceOf({ tables: 1, rows: 1, hash: "a" }, { tables: 1, rows: 1, hash: "a" })).toBeUndefined();
  expect(differenceOf({ tables: 2 }, { tables: 1 })).toBe("2 tables were stored, and 1 were found.");
  expect(differenceOf({ keys: 1 }, undefined)).toBe("1 keys were stored, and 0 were found.");
  expect(differenceOf({ rows: 1, hash: "a" }, { rows: 1, hash: "b" })).toContain("others than were stored");
});
