import { describe, expect, test } from "vitest";
import { restoredObject, withUids } from "./restored-object.ts";

const OLD = "0c6b4d3e-1111-4222-8333-944445555666";
const NEW = "9f6b4d3e-1111-4222-8333-944445555666";
const OTHER = "77777777-1111-4222-8333-944445555666";
const uids = new Map([[OLD, NEW]]);
const none = new Map<string, string>();

test("a uid of the backup becomes the new one, wherever it is", () => {
  expect(withUids(`a\t${OLD}\t{"${OLD}"}\t${OTHER}\n`, uids)).toBe(`a\t${NEW}\t{"${NEW}"}\t${OTHER}\n`);
});

describe("an object as it is created again", () => {
  test("belongs to the new owner, and to none that is not restored", () => {
    const owner = { apiVersion: "slipway.dev/v1alpha1", kind: "Project", name: "shop", controller: true };
    const secret = (uid: string) => ({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "a", namespace: "n", uid: OTHER, ownerReferences: [{ ...owner, uid }] },
      data: { key: "dmFsdWU=" },
    });
    expect(restoredObject(secret(OLD), uids, none)).toEqual({
      ...secret(OLD),
      metadata: { name: "a", namespace: "n", ownerReferences: [{ ...owner, uid: NEW }] },
    });
    expect(restoredObject(secret(OTHER), uids, none).metadata).toEqual({ name: "a", namespace: "n" });
  });

  test("is a namespace of its organization, whose policies the operator has yet to apply", () => {
    const metadata = {
      name: "slipway-org-a",
      labels: { "slipway.dev/organization": "a", "kubernetes.io/metadata.name": "slipway-org-a" },
      annotations: { "slipway.dev/guarded": "true" },
    };
    const saved = { apiVersion: "v1", kind: "Namespace", metadata, status: { phase: "Active" } };
    expect(restoredObject(saved, uids, none)).toEqual({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: "slipway-org-a", labels: { "slipway.dev/organization": "a" } },
    });
  });

  test("is a Service with its port of the nodes, and no address", () => {
    const ports = [{ name: "database", port: 5432, nodePort: 32_510 }];
    const spec = {
      type: "NodePort",
      selector: { a: "b" },
      ports,
      clusterIP: "10.96.0.7",
      clusterIPs: ["10.96.0.7"],
    };
    const annotations = { "slipway.dev/applied-hash": "x" };
    const metadata = { name: "shop-outside", namespace: "n", uid: OTHER, annotations };
    expect(
      restoredObject({ apiVersion: "v1", kind: "Service", metadata, spec } as never, uids, none),
    ).toEqual({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "shop-outside", namespace: "n" },
      spec: { type: "NodePort", selector: { a: "b" }, ports },
    });
  });

  test("has no generation that it has not yet had", () => {
    const claim = {
      apiVersion: "slipway.dev/v1alpha1",
      kind: "DomainClaim",
      metadata: { name: "shop.example.com" },
      spec: { project: { uid: OLD }, reservedFor: { generation: 7, at: "2026-01-01T00:00:00Z" } },
      status: { conditions: [{ type: "Ready", observedGeneration: 3 }], observedGeneration: 3 },
    };
    expect(restoredObject(claim, uids, none)).toMatchObject({
      spec: { project: { uid: NEW }, reservedFor: { generation: 1, at: "2026-01-01T00:00:00Z" } },
      status: { conditions: [{ type: "Ready", observedGeneration: 0 }], observedGeneration: 0 },
    });
  });
});

describe("a project as it is created again", () => {
  const project = (spec: object, status: object) => ({
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: { name: "shop", namespace: "n", uid: OLD },
    spec,
    status,
  });
  const backups = new Map([["n/shop", "shop-b1"]]);

  test("has its history, and nothing that was observed of its pods", () => {
    const deployments = [{ id: "d1", status: "succeeded", generation: 4 }];
    const saved = project(
      { type: "http" },
      {
        phase: "running",
        conditions: [],
        readyInstances: 2,
        observedGeneration: 4,
        templateVersion: 1,
        deployments,
      },
    );
    expect(restoredObject(saved, none, none)).toMatchObject({
      spec: { type: "http" },
      status: {
        observedGeneration: 0,
        templateVersion: 1,
        deployments: [{ id: "d1", status: "succeeded", generation: 0 }],
      },
    });
    const { status } = restoredObject(saved, none, none) as unknown as { status: object };
    expect(Object.keys(status)).toEqual(["observedGeneration", "templateVersion", "deployments"]);
  });

  test("has no run that is active", () => {
    const job = { activeRun: "shop-1", missed: 2 };
    expect(restoredObject(project({ type: "job" }, { job }), none, none)).toMatchObject({
      status: { job: { missed: 2 } },
    });
    expect(JSON.stringify(restoredObject(project({ type: "job" }, { job }), none, none))).not.toContain(
      "activeRun",
    );
  });

  test.for<[string, object, Map<string, string>, object]>([
    ["begins with its newest backup", {}, backups, { database: { restoreFrom: { backup: "shop-b1" } } }],
    [
      "begins with it, and not with the one that it had begun with",
      { database: { backup: { enabled: true }, restoreFrom: { backup: "old-b0" } } },
      backups,
      { database: { backup: { enabled: true }, restoreFrom: { backup: "shop-b1" } } },
    ],
    ["is empty without one", { database: { restoreFrom: { backup: "old-b0" } } }, none, {}],
  ])("a database %s", ([, spec, known, expected]) => {
    const saved = project({ type: "postgresql", ...spec }, {});
    expect((restoredObject(saved, none, known) as unknown as { spec: object }).spec).toEqual({
      type: "postgresql",
      ...expected,
    });
  });

  test("a database keeps its address, and is set up again", () => {
    const database = {
      host: "db.example.com",
      port: 20_001,
      restoredAt: "x",
      bootstrappedAt: "x",
      setUpHash: "x",
    };
    const restored = restoredObject(project({ type: "postgresql" }, { database }), none, none);
    expect(restored).toMatchObject({ status: { database: { host: "db.example.com", port: 20_001 } } });
    expect(JSON.stringify(restored)).not.toMatch(/restoredAt|bootstrappedAt|setUpHash/);
  });
});
