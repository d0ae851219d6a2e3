import { ConditionSet } from "@slipway/controller-runtime";
import { type Project, type ProjectConditionCatalog, type ProjectStatus, projectStatus } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import {
  databaseOf,
  exampleCredentials,
  exampleDatabase,
  liveOf,
  podOf,
} from "../../../test/kit/databases/examples.ts";
import { setPhase } from "../projects/status-fields.ts";
import type { ClusterState, LiveDatabase } from "./driver.ts";
import type { DatabaseFindings } from "./findings.ts";
import { summarizeDatabase } from "./status.ts";

const NOW = new Date("2026-03-01T00:00:00Z");
const clusterState: ClusterState = {
  primary: "shop-0",
  runningVersion: "17.6",
  identity: "74",
  credentialsHash: "0".repeat(32),
};
const serving = liveOf([podOf(0, { role: "primary" })]);
const volumes = { bound: true, capacityGb: 10, resizing: false };

/** Summarizes as the reconciler does, on top of an earlier status. */
function after(
  found: Partial<DatabaseFindings> = {},
  { before = {}, spec = {} }: { before?: ProjectStatus; spec?: Partial<Project["spec"]> } = {},
) {
  const project = exampleDatabase(spec);
  project.status = before;
  const status = structuredClone(before);
  const conditions = new ConditionSet<ProjectConditionCatalog>(status.conditions ?? [], {
    now: NOW,
    generation: 1,
  });
  conditions.set({ type: "Accepted", status: "True", reason: "Accepted" });
  const all: DatabaseFindings = {
    database: databaseOf({ project }),
    driver: { port: 5432 },
    live: serving,
    clusterState,
    volumes,
    full: [],
    address: { host: "192.0.2.1", port: 31_234 },
    credentials: exampleCredentials,
    now: NOW,
    ...found,
  };
  summarizeDatabase(project, all, conditions, status);
  setPhase(project, conditions, status);
  status.conditions = conditions.list();
  projectStatus.parse(JSON.parse(JSON.stringify(status)));
  const reasons = Object.fromEntries(conditions.list().map(({ type, reason }) => [type, reason]));
  return { status, reasons };
}

describe("a database", () => {
  test("whose volume is full is failing, and reports what to do, whatever else is wrong", () => {
    const pod = podOf(0, { role: "primary" });
    const missing = { reason: "PrimaryMissing", message: "No instance takes writes." } as const;
    const { status, reasons } = after({ full: [pod], clusterState: { missing } }, { before: after().status });
    expect(reasons).toMatchObject({ StorageReady: "DiskFull", Ready: "DiskFull", Progressing: "DiskFull" });
    expect(status.phase).toBe("failing");
    expect(after({ full: [pod] }, { before: after().status }).status.phase).toBe("failing");
    const message = "No room is left on the volume of shop-0: ask for more storage.";
    expect(status.conditions?.find(({ type }) => type === "Ready")).toMatchObject({ message });
    const growing = after({ full: [pod], volumes: { ...volumes, resizing: true } });
    expect(growing.reasons).toMatchObject({ StorageReady: "VolumeResizing" });
  });

  test("that serves reports its address and its version", () => {
    const { status, reasons } = after();
    expect(reasons).toEqual({
      Accepted: "Accepted",
      AddressReady: "AddressAssigned",
      DatabaseReady: "DatabaseAvailable",
      Progressing: "Settled",
      Ready: "Ready",
      StorageReady: "VolumeBound",
      WorkloadAvailable: "Available",
    });
    expect(status).toMatchObject({
      phase: "running",
      plan: "db-premium",
      desiredInstances: 1,
      currentInstances: 1,
      readyInstances: 1,
      database: {
        engine: "postgresql",
        driver: "native",
        version: "17",
        runningVersion: "17.6",
        primary: "shop-0",
        host: "192.0.2.1",
        port: 31_234,
        inside: { host: "shop.slipway-org-alpha.svc", port: 5432 },
        name: "app",
        username: "app",
        credentialsSecretRef: { name: "shop-credentials" },
        credentialsHash: "0".repeat(32),
        bootstrappedAt: NOW.toISOString(),
        identity: "74",
        storage: { capacity: 10 },
      },
    });
    expect(JSON.stringify(status)).not.toContain("password-of");
  });

  test("of several instances names the replicas' address, too", () => {
    const { status } = after(
      { live: liveOf([podOf(0, { role: "primary" }), podOf(1, { role: "replica" })]) },
      { spec: { instances: 2 } },
    );
    expect(status.database?.inside?.replicasHost).toBe("shop-replicas.slipway-org-alpha.svc");
  });

  test("that is new is being created until it accepts writes", () => {
    const missing = { reason: "Bootstrapping", message: "The database is being set up." } as const;
    const live = liveOf([podOf(0, { ready: false })]);
    const { status, reasons } = after({ clusterState: { missing }, live });
    expect(status.phase).toBe("creating");
    expect(reasons).toMatchObject({ Ready: "Bootstrapping", Progressing: "Creating" });
    expect(status.database?.bootstrappedAt).toBeUndefined();
  });

  test("without its primary fails for the moment, and forgets nothing but the primary", () => {
    const before = after().status;
    const missing = { reason: "PrimaryMissing", message: "No instance takes writes." } as const;
    const { status, reasons } = after(
      {
        clusterState: { missing },
        database: { ...databaseOf({ project: exampleDatabase() }), bootstrapped: true },
        live: liveOf([podOf(0, { ready: false })]),
      },
      { before },
    );
    expect(status.phase).toBe("failing");
    expect(reasons.Ready).toBe("PrimaryMissing");
    expect(status.database).toEqual({ ...before.database, primary: undefined });
  });

  test("whose pods crash reports it", () => {
    const pod = podOf(0, { ready: false });
    const crashed: LiveDatabase["pods"][number] = {
      ...pod,
      status: {
        ...pod.status,
        containerStatuses: [{ name: "database", state: { waiting: { reason: "CrashLoopBackOff" } } }],
      },
    };
    const missing = { reason: "Bootstrapping", message: "The database is being set up." } as const;
    const { status, reasons } = after({ clusterState: { missing }, live: liveOf([crashed]) });
    expect(reasons.Progressing).toBe("ContainerCrashing");
    expect(status.phase).toBe("failing");
  });

  test("without its address yet is not ready; one without any address is", () => {
    expect(after({ address: undefined }).reasons.Ready).toBe("AddressPending");
    const project = exampleDatabase();
    const database = databaseOf({ project, outside: { type: "None" } });
    const { reasons, status } = after({ address: undefined, database });
    expect(reasons.Ready).toBe("Ready");
    expect(reasons.AddressReady).toBeUndefined();
    expect(status.database?.host).toBeUndefined();
  });

  test("whose volumes grow, or cannot", () => {
    const growing = after({ volumes: { ...volumes, resizing: true } });
    expect(growing.reasons.StorageReady).toBe("VolumeResizing");
    expect(growing.status.database?.storage).toEqual({ capacity: 10, resizing: true });
    for (const obstacle of ["VolumeNotExpandable", "VolumeQuotaExceeded"] as const) {
      const stuck = after({ volumes: { ...volumes, resizing: true, obstacle } });
      expect(stuck.reasons.Ready).toBe(obstacle);
      expect(stuck.status.phase).toBe("failing");
    }
  });

  test("that is paused is stopped once its last instance is deleted, and resumes", () => {
    const before = after().status;
    const spec = { paused: true };
    const stopping = after({ clusterState: undefined }, { before, spec });
    expect(stopping.status.phase).toBe("deploying");
    const stopped = after({ clusterState: undefined, live: liveOf([]) }, { before: stopping.status, spec });
    expect(stopped.status.phase).toBe("stopped");
    expect(stopped.reasons.Ready).toBe("Paused");
    expect(stopped.status).toMatchObject({ desiredInstances: 0, currentInstances: 0 });
    const missing = { reason: "PrimaryMissing", message: "No instance takes writes." } as const;
    const resuming = after({ clusterState: { missing }, live: liveOf([]) }, { before: stopped.status });
    expect(resuming.status.phase).toBe("resuming");
    expect(after({}, { before: resuming.status }).status.phase).toBe("running");
  });
});
