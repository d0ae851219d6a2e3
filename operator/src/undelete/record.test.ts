import {
  annotations,
  type DeletedProject,
  deletedProjectName,
  deletedProjectState,
  isRestorable,
  labels,
  type Project,
} from "@slipway/crds";
import { describe, expect, test } from "vitest";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import {
  beyondLimit,
  isBeingUndeleted,
  type KeptState,
  keptSecret,
  recordNameOf,
  recordOf,
  restoredClaim,
  restoredProject,
  restoredSecret,
  restoredStatus,
  stateSecret,
} from "./record.ts";

const namespace = "slipway-org-a";
const UID = "0c6b4d3e-1111-4222-8333-944445555666";
const NEW = "9f6b4d3e-1111-4222-8333-944445555666";
const now = new Date("2026-01-31T12:00:00Z");
const base = exampleProject({ namespace, name: "shop" });
const deleted: Project = {
  ...base,
  metadata: {
    ...base.metadata,
    uid: UID,
    resourceVersion: "7",
    generation: 4,
    deletionTimestamp: "2026-01-31T11:59:00Z",
    finalizers: ["slipway.dev/project"],
    labels: { [labels.organization]: "a" },
    annotations: { mine: "kept", [annotations.traceparent]: "00-1" },
  },
  status: {
    observedGeneration: 4,
    phase: "running",
    conditions: [],
    readyInstances: 1,
    lastTermination: {
      instance: "shop-1",
      exitCode: 3,
      reason: "Error",
      finishedAt: "2026-01-30T00:00:00Z",
      restarts: 4,
    },
    templateVersion: 1,
    database: { bootstrappedAt: "2026-01-01T00:00:00Z", port: 30_001 },
  },
};
const fresh: Project = { ...base, metadata: { ...base.metadata, uid: NEW } };

describe("the record of a deleted project", () => {
  test("says what it was, and when it ends", () => {
    const volumes = [{ claimName: "shop", claimUid: "c", volumeName: "pvc-c", capacity: "1Gi" }];
    expect(recordOf(deleted, volumes, { now, hours: 24 })).toMatchObject({
      metadata: { name: "shop-0c6b4d3e", namespace, finalizers: ["slipway.dev/deletedproject"] },
      spec: {
        projectRef: { name: "shop", uid: UID },
        deletedAt: "2026-01-31T11:59:00Z",
        expiresAt: "2026-02-01T12:00:00.000Z",
        volumes,
      },
    });
  });

  test("of one whose undelete has not ended is still the one that it comes from", () => {
    const undeleting = {
      ...fresh,
      metadata: { ...fresh.metadata, annotations: { [annotations.undeletedFrom]: "r" } },
    };
    expect([recordNameOf(deleted), recordNameOf(undeleting)]).toEqual([deletedProjectName("shop", UID), "r"]);
    expect([isBeingUndeleted(deleted), isBeingUndeleted(undeleting)]).toEqual([false, true]);
  });

  test.each([
    [3, 4, []],
    [3, 3, ["r0"]],
    [5, 3, ["r0", "r1", "r2"]],
  ])("of %d where %d are kept, what makes room for one more is %j", (count, kept, expected) => {
    const records = Array.from({ length: count }, (_, index) => ({
      metadata: { name: `r${index}` },
      spec: { deletedAt: new Date(now.getTime() + index).toISOString() },
    })) as DeletedProject[];
    expect(beyondLimit(records.toReversed(), kept).map(({ metadata }) => metadata.name)).toEqual(expected);
  });

  test("can be undeleted until it expires or is deleted", () => {
    const record = recordOf(deleted, [], { now, hours: 1 });
    const deleting = {
      ...record,
      metadata: { ...record.metadata, deletionTimestamp: "2026-01-31T12:30:00Z" },
    };
    const at = (minutes: number) => new Date(now.getTime() + minutes * 60_000);
    expect([
      isRestorable(record, at(59)),
      isRestorable(record, at(60)),
      isRestorable(deleting, at(1)),
    ]).toEqual([true, false, false]);
  });
});

describe("what is kept", () => {
  const claim = {
    metadata: {
      name: "shop",
      namespace,
      uid: "c",
      labels: { [labels.project]: "shop" },
      annotations: {
        "pv.kubernetes.io/bind-completed": "yes",
        "slipway.dev/applied-hash": "h",
        [annotations.keep]: "true",
      },
      ownerReferences: [{ apiVersion: "v1", kind: "Project", name: "shop", uid: UID }],
    },
    spec: { volumeName: "pvc-c" },
    status: { phase: "Bound" },
  };
  const kept = deletedProjectState<KeptState>(
    stateSecret("r", { project: deleted, services: [], configMaps: [], claims: [claim] }).data,
  );

  test("of a claim is what people and this operator have noted, and the volume that it names", () => {
    const own = { labels: { [labels.project]: "shop" }, annotations: { [annotations.keep]: "true" } };
    expect(kept.claims).toEqual([
      { metadata: { name: "shop", namespace, ...own }, spec: { volumeName: "pvc-c" } },
    ]);
    expect(restoredClaim(kept.claims[0] ?? {}, fresh).metadata?.ownerReferences?.[0]?.uid).toBe(NEW);
    const worker = { ...fresh, spec: { ...fresh.spec, type: "worker" as const } };
    expect(restoredClaim(kept.claims[0] ?? {}, worker).metadata?.ownerReferences?.[0]?.uid).toBe(NEW);
    const database = { ...fresh, spec: { ...fresh.spec, type: "postgresql" as const } };
    expect(restoredClaim(kept.claims[0] ?? {}, database).metadata?.ownerReferences).toBeUndefined();
  });

  test("of a project is its spec, and the history of its status", () => {
    expect(restoredProject(kept, "r")).toEqual({
      apiVersion: base.apiVersion,
      kind: "Project",
      metadata: {
        name: "shop",
        namespace,
        labels: { [labels.organization]: "a" },
        annotations: { mine: "kept", [annotations.undeletedFrom]: "r" },
        finalizers: ["slipway.dev/project"],
      },
      spec: base.spec,
    });
    expect(restoredStatus(kept)).toEqual({
      observedGeneration: 0,
      templateVersion: 1,
      database: { bootstrappedAt: "2026-01-01T00:00:00Z", port: 30_001 },
    });
  });

  // Shows: docs/budgets.md#the-hard-cap: a project that is undeleted
  test("of a project that a budget has paused is not paused, and of one that a user has, is", () => {
    const pausedBy = (spec: Partial<Project["spec"]>) => {
      const { project } = kept;
      const restored = restoredProject(
        { ...kept, project: { ...project, spec: { ...project.spec, ...spec } } },
        "r",
      );
      return [restored.spec.paused, restored.spec.pausedBy];
    };
    expect(pausedBy({ paused: true, pausedBy: "budget" })).toEqual([undefined, undefined]);
    expect(pausedBy({ paused: true })).toEqual([true, undefined]);
  });

  test("of a Secret is all of it, under a name and a label that no project has", () => {
    const secret = {
      metadata: {
        name: "shop-env-1",
        namespace,
        labels: { [labels.project]: "shop" },
        annotations: { [annotations.envOrder]: "0" },
        ownerReferences: [{ apiVersion: "v1", kind: "Project", name: "shop", uid: UID }],
      },
      type: "Opaque",
      immutable: true,
      data: { COLOUR: "Ymx1ZQ==" },
    };
    const copy = keptSecret("r", secret);
    expect(copy.metadata?.name).toMatch(/^r-[0-9a-f]{12}$/);
    expect(copy.metadata?.labels).toEqual({ [labels.managedBy]: "slipway", [labels.deletedProject]: "r" });
    const { ownerReferences: _, ...metadata } = secret.metadata;
    expect(restoredSecret(copy, fresh)).toMatchObject({ ...secret, metadata });
    expect(restoredSecret(copy, fresh)?.metadata?.ownerReferences?.[0]?.uid).toBe(NEW);
    expect(restoredSecret(stateSecret("r", kept), fresh)).toBeUndefined();
  });
});
