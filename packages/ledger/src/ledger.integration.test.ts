import { createHash } from "node:crypto";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import {
  type AuditKey,
  beginAudits,
  connectLedger,
  countDeployments,
  type Deployment,
  findApiKey,
  findDeployment,
  findMember,
  findOrganization,
  finishAudits,
  firstClaimOf,
  forgetReservation,
  hasTombstone,
  insertApiKey,
  insertAuditEntries,
  insertMember,
  insertOrganization,
  insertTombstone,
  type Ledger,
  listDeployments,
  listOpenDeployments,
  listOrganizations,
  migrateToLatest,
  recordDeployment,
  retireReservations,
  revokeApiKey,
  setOrganizationBlocked,
  supersedeDeployment,
} from "./index.ts";

let postgres: TestPostgres;
let ledger: Ledger;

const sha256 = (text: string) => createHash("sha256").update(text).digest();
const tables = ["organizations", "users", "audit_log", "project_tombstones", "deployments"];

beforeAll(async () => {
  postgres = await startPostgres();
  ledger = connectLedger({ url: postgres.url, applicationName: "test" });
});

afterAll(async () => {
  await ledger?.destroy();
  await postgres?.stop();
});

describe("migrations", () => {
  it("are applied once when several processes start concurrently", async () => {
    const others = [1, 2, 3].map(() => connectLedger({ url: postgres.url, applicationName: "test" }));
    const applied = await Promise.all(others.map(migrateToLatest));
    expect(applied.flat().sort()).toEqual([
      "0001-organizations-and-credentials",
      "0002-writes",
      "0003-deployments-and-slots",
      "0004-slot-versions",
      "0005-idempotency-holders",
      "0006-job-runs",
      "0007-metric-samples",
      "0008-builds",
      "0009-organization-usage",
      "0010-audit-partitions",
      "0011-revoked-user-tokens",
      "0012-nothing-ahead",
      "0013-domain-reservations",
      "0014-git-delivery-queue",
      "0015-deployments-of-a-project",
      "0016-webhooks",
      "0017-alert-states",
      "0018-email-recipients",
      "0019-billable-changes",
      "0020-plan-charges",
      "0021-usage-sums",
      "0022-invoices",
      "0023-late-changes",
      "0024-metering-checkpoints",
      "0025-budgets",
      "0026-payment-events",
      "0027-billing-seals",
      "0028-resource-charges",
    ]);
    expect(await migrateToLatest(ledger)).toEqual([]);
    await Promise.all(others.map((other) => other.destroy()));
  });

  it("of a later release are left as they are: its processes run beside those of this one, or ran before", async () => {
    const later = "9999-of-a-later-release";
    const timestamp = new Date().toISOString();
    await sql`insert into kysely_migration (name, timestamp) values (${later}, ${timestamp})`.execute(ledger);
    expect(await migrateToLatest(ledger)).toEqual([]);
    await sql`delete from kysely_migration where name = ${later}`.execute(ledger);
  });
});

describe("queries", () => {
  beforeEach(async () => {
    await migrateToLatest(ledger);
    await sql.raw(`truncate ${tables.join(", ")} cascade`).execute(ledger);
    await insertOrganization(ledger, { id: "acme", name: "Acme" });
  });

  it("refuse an organization id that cannot name a namespace", async () => {
    await expect(insertOrganization(ledger, { id: "Not_Legal", name: "x" })).rejects.toThrow(/check/);
  });

  it("list organizations and block one", async () => {
    await insertOrganization(ledger, { id: "other", name: "Other" });
    expect(await setOrganizationBlocked(ledger, "acme", true)).toEqual({ waived: [] });
    expect(await setOrganizationBlocked(ledger, "nobody", true)).toBeUndefined();
    expect((await findOrganization(ledger, "acme"))?.blocked).toBe(true);
    expect((await listOrganizations(ledger)).map((row) => row.id)).toEqual(["acme", "other"]);
  });

  it("find a key with its grants until it is revoked", async () => {
    const grants = [
      { permission: "project.read", resource: "project:*" },
      { permission: "project.create", resource: "organization:*" },
    ];
    await insertApiKey(ledger, {
      id: "k1",
      organizationId: "acme",
      prefix: "slw",
      sha256: sha256("a key"),
      grants,
    });
    const found = await findApiKey(ledger, "k1");
    expect(found).toMatchObject({ id: "k1", organizationId: "acme", sha256: sha256("a key") });
    expect(found?.grants).toEqual(expect.arrayContaining(grants));
    expect(await revokeApiKey(ledger, "k1", new Date())).toBe(true);
    expect(await findApiKey(ledger, "k1")).toBeUndefined();
    expect(await revokeApiKey(ledger, "none", new Date())).toBe(false);
  });

  it("store neither key nor grants when one of them is refused", async () => {
    const key = { id: "k2", organizationId: "acme", prefix: "slw", sha256: Buffer.from("short"), grants: [] };
    await expect(insertApiKey(ledger, key)).rejects.toThrow(/check/);
    expect(await findApiKey(ledger, "k2")).toBeUndefined();
  });

  it("find a member with its role and grants in that organization only", async () => {
    await insertOrganization(ledger, { id: "other", name: "Other" });
    const grants = [{ permission: "project.read", resource: "project:*" }];
    await insertMember(ledger, { userId: "u1", organizationId: "acme", role: "assistant", grants });
    expect(await findMember(ledger, "u1", "acme")).toMatchObject({ role: "assistant", grants });
    expect(await findMember(ledger, "u1", "other")).toBeUndefined();
  });

  it("keep tombstones and audit lines", async () => {
    expect(await hasTombstone(ledger, "acme", "p1")).toBe(false);
    await insertTombstone(ledger, "acme", "p1", "One");
    await insertTombstone(ledger, "acme", "p1", "One");
    expect(await hasTombstone(ledger, "acme", "p1")).toBe(true);
    expect(await hasTombstone(ledger, "other", "p1")).toBe(false);
    const entry = {
      organizationId: "acme",
      actor: "api-key:k1",
      operation: "deleteProject",
      projectId: "p1",
      sourceIp: "127.0.0.1",
      status: 200,
      code: null,
    };
    await insertAuditEntries(ledger, [{ entry, at: new Date() }]);
    const lines = await ledger.selectFrom("audit_log").select(["actor", "status"]).execute();
    expect(lines).toEqual([{ actor: "api-key:k1", status: 200 }]);
  });

  it("keep an audit row from before the write, and its first outcome", async () => {
    const intent = {
      organizationId: "acme",
      actor: "api-key:k1",
      operation: "createProject",
      projectId: null,
      sourceIp: "127.0.0.1",
    };
    const [, key] = (await beginAudits(ledger, [{ ...intent, projectId: "p1" }, intent])) as [
      AuditKey,
      AuditKey,
    ];
    const finish = { key, finishedAt: new Date() };
    await finishAudits(ledger, [{ ...finish, status: 201, code: null, projectId: "p2" }]);
    await finishAudits(ledger, [{ ...finish, status: 500, code: "INTERNAL_ERROR", projectId: null }]);
    const lines = await ledger
      .selectFrom("audit_log")
      .select(["project_id", "status", "code", "finished_at"])
      .orderBy("id")
      .execute();
    expect(lines).toEqual([
      { project_id: "p1", status: null, code: null, finished_at: null },
      { project_id: "p2", status: 201, code: null, finished_at: expect.any(Date) },
    ]);
  });

  it("keep a deployment's final status whatever is recorded later, and list a window newest first", async () => {
    const row = (id: string, minute: number, more: Partial<Deployment> = {}): Deployment => ({
      id,
      organization_id: "acme",
      project_id: "p1",
      project_uid: "u1",
      created_at: new Date(Date.UTC(2026, 0, 1, 0, minute)),
      finished_at: null,
      status: "in_progress",
      updated_image: true,
      image: "registry.example/app:1",
      digest: null,
      settings_hash: "h1",
      message: null,
      ...more,
    });
    const finished = { status: "succeeded", finished_at: new Date(), digest: "sha256:ab" } as const;
    for (const each of [row("d1", 1), row("d1", 1, finished), row("d1", 1), row("d2", 2), row("d3", 3)]) {
      await recordDeployment(ledger, each);
    }
    await recordDeployment(ledger, row("d1", 1, { status: "failed" }));
    await recordDeployment(ledger, row("d1", 1, { organization_id: "other" }));
    const list = (from: number, to: number) =>
      listDeployments(ledger, {
        organizationId: "acme",
        projectId: "p1",
        projectUid: "u1",
        from: new Date(Date.UTC(2026, 0, 1, 0, from)),
        to: new Date(Date.UTC(2026, 0, 1, 0, to)),
      });
    expect((await list(1, 3)).map(({ id }) => id)).toEqual(["d2", "d1"]);
    expect((await list(1, 2))[0]).toMatchObject({ status: "succeeded", digest: "sha256:ab" });

    // What failed may serve after all, and then has not failed; nothing else follows an end.
    const failed = { status: "failed", message: "Nothing answers." } as const;
    const seen: (string | undefined)[] = [];
    for (const each of [failed, { status: "superseded" } as const, finished, failed, {}]) {
      await recordDeployment(ledger, row("d2", 2, each));
      seen.push((await list(2, 3))[0]?.status);
    }
    expect(seen).toEqual(["failed", "failed", "succeeded", "succeeded", "succeeded"]);
    expect((await list(2, 3))[0]?.message).toBeNull();
  });

  it("keep the deployments of a project apart from those of an earlier one of its name", async () => {
    const named = (id: string, project_uid: string | null): Deployment => ({
      id,
      organization_id: "acme",
      project_id: "again",
      project_uid,
      created_at: new Date(Date.UTC(2026, 0, 1)),
      finished_at: null,
      status: "in_progress",
      updated_image: true,
      image: "registry.example/app:1",
      digest: null,
      settings_hash: "h1",
      message: null,
    });
    const rows = [named("deleted", "u1"), named("own", "u2"), named("of-an-earlier-version", null)];
    for (const row of rows) {
      await recordDeployment(ledger, row);
    }
    const project = { organizationId: "acme", projectId: "again", projectUid: "u2" };
    const window = { ...project, from: new Date(Date.UTC(2026, 0, 1)), to: new Date(Date.UTC(2026, 0, 2)) };
    const listed = await listDeployments(ledger, window);
    expect(listed.map(({ id }) => id)).toEqual(["own", "of-an-earlier-version"]);
    expect(await countDeployments(ledger, window)).toBe(2);
    expect(await findDeployment(ledger, { ...project, id: "deleted" })).toBeUndefined();
    expect(await findDeployment(ledger, { ...project, id: "own" })).toMatchObject({ project_uid: "u2" });
    // Whose a row of an earlier version is, is known once this one writes it.
    await recordDeployment(ledger, { ...named("of-an-earlier-version", "u2"), status: "failed" });
    expect(await countDeployments(ledger, { ...window, projectUid: "u3" })).toBe(0);
  });

  it("name the deployments that have been open for long, and end one of them once", async () => {
    const began = (
      minutesAgo: number,
    ): Pick<Deployment, "organization_id" | "project_id" | "created_at"> => ({
      organization_id: "acme",
      project_id: "open",
      created_at: new Date(Date.now() - minutesAgo * 60_000),
    });
    const rest = {
      project_uid: "u1",
      updated_image: false,
      image: "",
      digest: null,
      settings_hash: "h",
      message: null,
    };
    for (const [id, minutesAgo] of [
      ["young", 1],
      ["old", 3],
      ["older", 4],
    ] as const) {
      const row = { id, ...began(minutesAgo), ...rest, finished_at: null, status: "in_progress" as const };
      await recordDeployment(ledger, row);
    }
    const open = async () =>
      (await listOpenDeployments(ledger, 120))
        .filter(({ project_id }) => project_id === "open")
        .map(({ id }) => id);
    expect(await open()).toEqual(["older", "old"]);
    const key = { organization_id: "acme", project_id: "open", id: "old" };
    expect(await supersedeDeployment(ledger, { ...key, organization_id: "other" })).toBe(false);
    expect(await supersedeDeployment(ledger, key)).toBe(true);
    expect(await supersedeDeployment(ledger, key)).toBe(false);
    expect(await open()).toEqual(["older"]);
    const found = await findDeployment(ledger, {
      organizationId: "acme",
      projectId: "open",
      projectUid: "u1",
      id: "old",
    });
    expect(found).toMatchObject({ status: "superseded", finished_at: expect.any(Date) });
  });

  it("answer again by themselves after the database crashed and came back", async () => {
    await postgres.crash();
    await expect(listOrganizations(ledger)).rejects.toThrow();
    await postgres.restart();
    expect((await listOrganizations(ledger)).map((row) => row.id)).toEqual(["acme"]);
  });
});

describe("reservations of domains", () => {
  const at = (day: number) => new Date(Date.UTC(2026, 0, day));
  const claim = (claimedAt: Date) => ({ organizationId: "acme", hostname: "shop.example.com", claimedAt });

  // Shows: docs/applications.md#project-settings: custom domains: removed and added again, a reservation
  it("count from an organization's first claim, whatever order they are recorded in", async () => {
    expect(await firstClaimOf(ledger, claim(at(2)))).toEqual(at(2));
    expect(await firstClaimOf(ledger, claim(at(9)))).toEqual(at(2));
    expect(await firstClaimOf(ledger, claim(at(1)))).toEqual(at(1));
    expect(await firstClaimOf(ledger, { ...claim(at(5)), organizationId: "other" })).toEqual(at(5));
  });

  it("end with a proof, or thirty days after the last claim", async () => {
    expect(await retireReservations(ledger, new Date(at(9).getTime() + 29 * 86_400_000))).toBe(1);
    expect(await firstClaimOf(ledger, claim(at(9)))).toEqual(at(1));
    await forgetReservation(ledger, claim(at(9)));
    expect(await firstClaimOf(ledger, claim(at(9)))).toEqual(at(9));
    expect(await retireReservations(ledger, new Date(at(9).getTime() + 31 * 86_400_000))).toBe(1);
  });
});
