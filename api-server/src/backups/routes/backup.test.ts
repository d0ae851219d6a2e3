import { type Backup, labels, organizationNamespace, type Project } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databaseSpec } from "../../../../test/kit/api-server/databases.ts";
import { type FakeHarness, startFakeHarness } from "../../../../test/kit/api-server/harness.ts";
import { buildApp } from "../../app.ts";
import { backupResource, projectResource } from "../../resources.ts";
import { restoreBody, restoreRequest } from "../restore.ts";

const NAMESPACE = organizationNamespace("acme");
let harness: FakeHarness;
let headers: Record<string, string>;

beforeAll(async () => {
  harness = await startFakeHarness();
  headers = harness.key("acme", "* on organization:*", "* on project:*");
  await harness.project("acme", "pshop");
  await harness.project("acme", "pdb", databaseSpec("postgresql", { name: "the-database" }));
  await harness.project("acme", "pidle", databaseSpec("postgresql", { name: "the-idle" }));
  await harness.project("acme", "ppaused", databaseSpec("postgresql", { name: "the-paused", paused: true }));
});
afterAll(() => harness?.close());

const SUCCEEDED: Backup["status"] = {
  phase: "succeeded",
  engine: "postgresql",
  version: "17",
  startedAt: "2026-01-31T12:00:01Z",
  finishedAt: "2026-01-31T12:00:09Z",
  sizeBytes: 4096,
  sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  contents: { tables: 2, rows: 30, hash: "0123" },
  source: {
    name: "the-database",
    plan: "db-basic",
    paymentMode: "hourly",
    instances: 1,
    capacity: 20,
    networkAccess: { ingressWhiteList: [{ cidr: "0.0.0.0/0" }] },
  },
};

/** Puts a backup into the cluster, as the operator leaves it. */
async function backup(project: string, name: string, status?: Backup["status"]): Promise<Backup> {
  const created = await harness.kube.create<Backup>(backupResource, {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Backup",
    metadata: { name, namespace: NAMESPACE, labels: { [labels.project]: project } },
    spec: { projectRef: { name: project }, trigger: "manual", requestedAt: "2026-01-31T12:00:00Z" },
  });
  if (!status) {
    return created;
  }
  return harness.kube.updateStatus<Backup>(backupResource, { ...created, status });
}

function call(method: "GET" | "POST" | "PUT" | "DELETE", path: string, payload?: object) {
  return harness.app.inject({
    method,
    url: `/v1/project/${path}`,
    headers,
    ...(payload ? { payload } : {}),
  });
}

const live = (name: string) =>
  harness.kube.getOrUndefined<Backup>(backupResource, { namespace: NAMESPACE, name });

describe("a backup", () => {
  // Shows: docs/backups.md#over-v1: `POST /v1/project/:id/backups` | 202: one is created now, and kept
  // Shows: docs/backups.md#over-v1: 409 `BACKUP_ACTIVE`: another one of the project is in progress
  it("is requested, one at a time, and kept as long as requested", async () => {
    const response = await call("POST", "pdb/backups", { retention_days: 30 });
    expect(response.statusCode).toBe(202);
    const { id, expires_at, requested_at, status } = response.json().data.backup;
    expect(id).toMatch(/^pdb-b[0-9]+-[a-z0-9]{4}$/);
    expect(status).toBe("pending");
    expect(Date.parse(expires_at) - Date.parse(requested_at)).toBe(30 * 86_400_000);
    expect((await live(id))?.spec).toMatchObject({ projectRef: { name: "pdb" }, trigger: "manual" });
    const second = await call("POST", "pdb/backups");
    expect([second.statusCode, second.json().code]).toEqual([409, "BACKUP_ACTIVE"]);
    const listed = await call("GET", "pdb/backups");
    expect(listed.json().data.backups.map((one: { id: string }) => one.id)).toEqual([id]);
    expect((await call("DELETE", `pdb/backups/${id}`)).statusCode).toBe(202);
    expect((await call("GET", `pdb/backups/${id}`)).json().code).toBe("BACKUP_NOT_FOUND");
  });

  // Shows: docs/backups.md#over-v1: 409 `PROJECT_PAUSED`
  it("of a paused database is refused", async () => {
    const response = await call("POST", "ppaused/backups");
    expect([response.statusCode, response.json().code]).toEqual([409, "PROJECT_PAUSED"]);
  });

  // Shows: docs/backups.md#over-v1: 400 `PROJECT_TYPE_MISMATCH` for applications, jobs and ClickHouse
  it("of an application is refused", async () => {
    for (const path of ["pshop/backups", "pshop/backups/policy", "pshop/backups/pshop-b1"]) {
      expect((await call("GET", path)).json().code).toBe("PROJECT_TYPE_MISMATCH");
    }
  });

  // Shows: docs/backups.md#over-v1: `GET /v1/project/:id/backups/:backupId` | its progress, its size
  it("shows its outcome, and nothing of where it is stored", async () => {
    await backup("pdb", "pdb-b1", { ...SUCCEEDED, location: "s3://bucket/pdb-b1" });
    const response = await call("GET", "pdb/backups/pdb-b1");
    expect(response.json().data.backup).toMatchObject({
      id: "pdb-b1",
      status: "succeeded",
      size_bytes: 4096,
      contents: { tables: 2, rows: 30, keys: null },
      verification: null,
    });
    expect(response.body).not.toContain("s3:");
  });

  // Shows: docs/backups.md#over-v1: 404 `BACKUP_NOT_FOUND`: the project has none of this id
  it("is another project's nowhere else", async () => {
    await backup("pother", "pother-b1", SUCCEEDED);
    const response = await call("GET", "pdb/backups/pother-b1");
    expect([response.statusCode, response.json().code]).toEqual([404, "BACKUP_NOT_FOUND"]);
  });

  // Shows: docs/backups.md#over-v1: `GET /v1/project/:id/backups` | the newest first; of a deleted
  it("outlives its project", async () => {
    await backup("pgone", "pgone-b1", SUCCEEDED);
    expect((await call("GET", "pgone/backups")).json().data.backups).toHaveLength(1);
    expect((await call("GET", "pgone/backups/pgone-b1")).statusCode).toBe(200);
    expect((await call("POST", "pgone/backups")).json().code).toBe("PROJECT_NOT_FOUND");
    expect((await call("GET", "pnever/backups")).json().code).toBe("PROJECT_NOT_FOUND");
  });

  // Shows: docs/backups.md#over-v1: `POST /v1/project/:id/backups/:backupId/verify` | 202: it is
  it("is tried once at a time, when it is complete", async () => {
    await backup("pdb", "pdb-b2", { phase: "failed", message: "it took too long" });
    const refused = await call("POST", "pdb/backups/pdb-b2/verify");
    expect([refused.statusCode, refused.json().code]).toEqual([409, "BACKUP_NOT_COMPLETE"]);
    await backup("pdb", "pdb-b3", SUCCEEDED);
    const first = await call("POST", "pdb/backups/pdb-b3/verify");
    expect(first.json().data.backup.verification.status).toBe("running");
    const again = await call("POST", "pdb/backups/pdb-b3/verify");
    expect(again.json().data.backup.verification).toEqual(first.json().data.backup.verification);
  });
});

describe("backups", () => {
  // Shows: docs/backups.md#over-v1: 503 `BACKUPS_UNAVAILABLE`: the platform makes none
  it("are refused where the platform takes none", async () => {
    const app = buildApp({ ...harness.services, backups: () => undefined });
    for (const [method, url] of [
      ["POST", "/v1/project/pidle/backups"],
      ["GET", "/v1/project/pdb/backups/policy"],
      ["POST", "/v1/project/pdb/backups/pdb-b1/verify"],
    ] as const) {
      const response = await app.inject({ method, url, headers });
      expect([response.statusCode, response.json().code]).toEqual([503, "BACKUPS_UNAVAILABLE"]);
    }
    // After what the project itself refuses.
    const paused = await app.inject({ method: "POST", url: "/v1/project/ppaused/backups", headers });
    expect([paused.statusCode, paused.json().code]).toEqual([409, "PROJECT_PAUSED"]);
    await app.close();
  });
});

describe("the policy of backups", () => {
  // Shows: docs/backups.md#over-v1: `GET /v1/project/:id/backups/policy` | `enabled`, `schedule`
  // Shows: docs/backups.md#over-v1: `PUT /v1/project/:id/backups/policy` | the whole policy; omitted
  it("is the platform's until the database has its own", async () => {
    expect((await call("GET", "pdb/backups/policy")).json().data).toEqual({
      enabled: true,
      schedule: "30 2 * * *",
      verify_schedule: null,
      retention_days: 7,
      timezone: "UTC",
    });
    const own = { schedule: "0  3 * * SUN", retention_days: 35 };
    expect((await call("PUT", "pdb/backups/policy", own)).json().data).toMatchObject({
      schedule: "0 3 * * SUN",
      retention_days: 35,
    });
    const project = await harness.kube.get<Project>(projectResource, { namespace: NAMESPACE, name: "pdb" });
    expect(project.spec.database).toEqual({ backup: { schedule: "0 3 * * SUN", retentionDays: 35 } });
    expect((await call("PUT", "pdb/backups/policy", { enabled: false })).json().data).toMatchObject({
      enabled: false,
      schedule: null,
    });
  });

  it("names a schedule that is none", async () => {
    const response = await call("PUT", "pdb/backups/policy", { schedule: "@daily", retention_days: 0 });
    expect(response.json().errors.map((error: { field: string }) => error.field)).toEqual([
      "schedule",
      "retention_days",
    ]);
  });
});

describe("a restore", () => {
  // Shows: docs/backups.md#over-v1: `POST /v1/project/:id/backups/:backupId/restore` | 201, as a
  it("takes what is not sent from the old project", async () => {
    const created = await backup("pdb", "pdb-b4", SUCCEEDED);
    const body = restoreBody.parse({ name: "the-restored", instances: 3 });
    expect(restoreRequest(created, body, harness.services).spec).toEqual({
      type: "postgresql",
      name: "the-restored",
      plan: "db-basic",
      paymentMode: "hourly",
      version: "17",
      instances: 3,
      storage: { persistent: true, capacity: 20 },
      networkAccess: { ingressWhiteList: [{ cidr: "0.0.0.0/0" }] },
      database: { restoreFrom: { backup: "pdb-b4" } },
    });
  });

  // Shows: docs/backups.md#over-v1: 400 names every broken rule of a restore by the body's own fields
  it("names every broken rule by the body's own fields", async () => {
    const response = await call("POST", "pdb/backups/pdb-b4/restore", {
      name: "the-restored",
      plan: "db-free",
      instances: 2,
      storage_capacity: 10,
    });
    expect(response.statusCode).toBe(400);
    const fields = response.json().errors.map((error: { field: string }) => error.field);
    expect(new Set(fields)).toEqual(new Set(["instances", "storage_capacity"]));
  });

  // Shows: docs/backups.md#over-v1: 409 `BACKUP_NOT_COMPLETE`: only one that has succeeded is verified
  it("of a backup that is not complete is refused", async () => {
    const response = await call("POST", "pdb/backups/pdb-b2/restore", { name: "the-restored" });
    expect([response.statusCode, response.json().code]).toEqual([409, "BACKUP_NOT_COMPLETE"]);
  });

  // Shows: docs/backups.md#over-v1: a restore needs `project.backup.restore`, and the permission to
  it("needs the right to create such a project, too", async () => {
    const response = await harness.app.inject({
      method: "POST",
      url: "/v1/project/pdb/backups/pdb-b4/restore",
      headers: harness.key("acme", "project.backup.restore on project:*", "project.create on organization:*"),
      payload: { name: "the-restored" },
    });
    expect([response.statusCode, response.json().required]).toEqual([
      403,
      ["database.create on organization:*"],
    ]);
  });
});
