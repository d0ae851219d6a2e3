import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import {
  type BuildLogChunk,
  type BuildRow,
  type BuildTrigger,
  claimBuildTrigger,
  claimDeliveredTrigger,
  connectLedger,
  findBuild,
  findBuildTriggers,
  forgetRetiredImage,
  isGitDeliveryKnown,
  type Ledger,
  listBuilds,
  listRetiredImages,
  migrateToLatest,
  readBuildLog,
  recordBuild,
  recordBuildLog,
  recordBuildTriggers,
  recordGitDelivery,
  retireBuilds,
  retireGitDeliveries,
} from "./index.ts";

let postgres: TestPostgres;
let ledger: Ledger;

beforeAll(async () => {
  postgres = await startPostgres();
  ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(ledger);
});
afterAll(async () => {
  await ledger?.destroy();
  await postgres?.stop();
});
beforeEach(async () => {
  await sql`truncate builds, build_log_chunks, build_triggers, git_deliveries, retired_images`.execute(
    ledger,
  );
});

const project = { organizationId: "acme", projectId: "pshop", projectUid: "u1" };
const day = (count: number) => new Date(Date.UTC(2026, 0, 1 + count));
const minute = (count: number) => new Date(Date.UTC(2026, 0, 1, 0, count));

const pending = (id: string, more: Partial<BuildRow> = {}): BuildRow => ({
  organization_id: "acme",
  project_id: "pshop",
  project_uid: "u1",
  id,
  triggered_by: "push",
  branch: "main",
  tag: null,
  commit_sha: null,
  commit_message: null,
  status: "pending",
  digest: null,
  error_code: null,
  error_message: null,
  created_at: minute(0),
  started_at: null,
  finished_at: null,
  ...more,
});
const ended = (id: string, more: Partial<BuildRow> = {}): BuildRow =>
  pending(id, { status: "success", started_at: minute(1), finished_at: minute(2), ...more });

const idsOf = ({ builds }: { builds: { id: string }[] }) => builds.map(({ id }) => id);
const firstPage = { offset: 0, limit: 50 };

describe("builds", () => {
  it("go through their states, whatever order these are recorded in", async () => {
    expect(await recordBuild(ledger, pending("b1"))).toBe(true);
    const building = pending("b1", { status: "building", started_at: minute(1), commit_sha: "a".repeat(40) });
    expect(await recordBuild(ledger, building)).toBe(true);
    expect(await recordBuild(ledger, pending("b1"))).toBe(false);
    const failed = { status: "failed", error_code: "BUILD_COMMAND_FAILED", finished_at: minute(2) } as const;
    expect(await recordBuild(ledger, { ...building, ...failed })).toBe(true);
    expect(await recordBuild(ledger, { ...building, ...failed })).toBe(true);
    expect(await recordBuild(ledger, ended("b1"))).toBe(false);
    expect(await findBuild(ledger, { ...project, id: "b1" })).toMatchObject({
      status: "failed",
      error_code: "BUILD_COMMAND_FAILED",
      commit_sha: "a".repeat(40),
    });
  });

  it("take what is new of a state that is not final", async () => {
    await recordBuild(ledger, pending("b1", { status: "building" }));
    await recordBuild(ledger, pending("b1", { status: "building", commit_message: "Fix it" }));
    expect(await findBuild(ledger, { ...project, id: "b1" })).toMatchObject({ commit_message: "Fix it" });
  });

  it("that have ended say when, and others do not", async () => {
    await expect(recordBuild(ledger, ended("b1", { finished_at: null }))).rejects.toThrow("ended_when_final");
    await expect(recordBuild(ledger, pending("b1", { finished_at: minute(1) }))).rejects.toThrow(
      "ended_when_final",
    );
  });

  it("of a project that was created again are separate from those of its predecessor", async () => {
    await recordBuild(ledger, pending("b1"));
    const anew = { ...project, projectUid: "u2" };
    expect(await recordBuild(ledger, ended("b1", { project_uid: "u2" }))).toBe(false);
    expect(await findBuild(ledger, { ...anew, id: "b1" })).toBeUndefined();
    expect(await listBuilds(ledger, { ...anew, ...firstPage })).toEqual({ total: 0, builds: [] });
  });

  it("are listed newest first, by branch and status", async () => {
    for (const count of [1, 2, 3]) {
      await recordBuild(ledger, pending(`b${count}`, { created_at: minute(count) }));
    }
    await recordBuild(ledger, ended("b4", { branch: "next", created_at: minute(4) }));
    expect(idsOf(await listBuilds(ledger, { ...project, ...firstPage }))).toEqual(["b4", "b3", "b2", "b1"]);
    const page = await listBuilds(ledger, { ...project, offset: 1, limit: 2 });
    expect([page.total, idsOf(page)]).toEqual([4, ["b3", "b2"]]);
    expect(idsOf(await listBuilds(ledger, { ...project, ...firstPage, branch: "next" }))).toEqual(["b4"]);
    expect((await listBuilds(ledger, { ...project, ...firstPage, status: "pending" })).total).toBe(3);
  });
});

describe("the history", () => {
  const digest = (count: number) => `sha256:${String(count).repeat(64)}`;

  it("has 30 builds of a project, and none that ended 30 days ago", async () => {
    for (let count = 1; count <= 32; count += 1) {
      await recordBuild(ledger, ended(`b${count}`, { created_at: minute(count), finished_at: day(1) }));
    }
    await recordBuild(ledger, ended("old", { project_id: "pother", finished_at: minute(5) }));
    await recordBuild(ledger, pending("slow", { project_id: "pother" }));
    expect(await retireBuilds(ledger, day(30))).toBe(2);
    expect((await listBuilds(ledger, { ...project, ...firstPage })).total).toBe(30);
    expect(await findBuild(ledger, { ...project, id: "b2" })).toBeUndefined();
    expect(await retireBuilds(ledger, day(31))).toBe(1 + 0);
    const other = { ...project, projectId: "pother" };
    expect(idsOf(await listBuilds(ledger, { ...other, ...firstPage }))).toEqual(["slow"]);
    expect(await retireBuilds(ledger, day(32), project)).toBe(30);
  });

  it("records images that no build has any more", async () => {
    await recordBuild(ledger, ended("b1", { digest: digest(1), finished_at: minute(2) }));
    await recordBuild(ledger, ended("b2", { digest: digest(2), finished_at: minute(2) }));
    await recordBuild(ledger, ended("b3", { digest: digest(2), finished_at: day(20) }));
    await recordBuildLog(ledger, { ...project, id: "b1" }, [chunk(1)]);
    expect(await retireBuilds(ledger, day(31))).toBe(2);
    expect((await listRetiredImages(ledger)).map((image) => image.digest)).toEqual([digest(1)]);
    // Built again meanwhile, and so named again.
    await recordBuild(ledger, pending("b4", { status: "building", digest: digest(1) }));
    expect(await listRetiredImages(ledger)).toEqual([]);
    await forgetRetiredImage(ledger, { organization_id: "acme", project_id: "pshop", digest: digest(1) });
    expect((await sql`select from build_log_chunks`.execute(ledger)).rows).toEqual([]);
  });
});

const chunk = (sequence: number): BuildLogChunk => ({
  sequence,
  at: minute(sequence),
  level: "info",
  step: "build",
  message: `line ${sequence}`,
  final: false,
});

describe("logs of builds", () => {
  const key = { ...project, id: "b1" };

  it("have every line once, in order", async () => {
    await recordBuild(ledger, pending("b1"));
    expect(await recordBuildLog(ledger, key, [chunk(1), chunk(2)])).toBe(2);
    expect(await recordBuildLog(ledger, key, [chunk(1), chunk(2), chunk(3_000_001)])).toBe(1);
    expect(await readBuildLog(ledger, key, { cursor: 0, limit: 2 })).toEqual([chunk(1), chunk(2)]);
    expect(await readBuildLog(ledger, key, { cursor: 2, limit: 2 })).toEqual([chunk(3_000_001)]);
    expect(await readBuildLog(ledger, key, { cursor: 3_000_001, limit: 2 })).toEqual([]);
  });

  it("take more lines than one statement does, and none of a build that is not there", async () => {
    await recordBuild(ledger, pending("b1"));
    const many = Array.from({ length: 2_500 }, (_, index) => chunk(index + 1));
    expect(await recordBuildLog(ledger, key, many)).toBe(2_500);
    await expect(recordBuildLog(ledger, { ...key, id: "b2" }, [chunk(1)])).rejects.toThrow("foreign key");
  });
});

describe("triggers of builds", () => {
  const trigger: BuildTrigger = {
    organizationId: "acme",
    projectUid: "u1",
    trigger: "tag",
    ref: "v1",
    commitSha: "a".repeat(40),
  };

  it("belong to one build, whatever claims them first", async () => {
    const claims = await Promise.all(["b1", "b2", "b3"].map((id) => claimBuildTrigger(ledger, trigger, id)));
    expect(new Set(claims).size).toBe(1);
    expect(["b1", "b2", "b3"]).toContain(claims[0]);
    expect(await claimBuildTrigger(ledger, { ...trigger, trigger: "release" }, "b4")).toBe("b4");
  });

  it("that were there before set nothing off", async () => {
    await recordBuildTriggers(ledger, [trigger, { ...trigger, ref: "v2" }]);
    expect(await claimBuildTrigger(ledger, trigger, "b1")).toBeNull();
    expect(await claimBuildTrigger(ledger, { ...trigger, ref: "v3" }, "b1")).toBe("b1");
  });

  it("that a poll recorded while their delivery was on its way start the delivery's build, and one alone", async () => {
    const delivered = { ...trigger, ref: "v2" };
    await recordBuildTriggers(ledger, [trigger, delivered]);
    await sql`update build_triggers set seen_at = now() - interval '11 minutes' where ref = 'v1'`.execute(
      ledger,
    );
    const claims = await Promise.all(["b1", "b2"].map((id) => claimDeliveredTrigger(ledger, delivered, id)));
    expect(new Set(claims).size).toBe(1);
    expect(["b1", "b2"]).toContain(claims[0]);
    expect(await claimBuildTrigger(ledger, delivered, "b3")).toBe(claims[0]);
    expect(await claimDeliveredTrigger(ledger, trigger, "b4")).toBeNull();
    expect(await claimDeliveredTrigger(ledger, { ...trigger, ref: "v3" }, "b5")).toBe("b5");
  });

  it("report whether and for which build they are known", async () => {
    await recordBuildTriggers(ledger, [trigger]);
    const claimed = { ...trigger, ref: "v2" };
    await claimBuildTrigger(ledger, claimed, "b1");
    const asked = [trigger, claimed, { ...trigger, ref: "v3" }, { ...trigger, commitSha: "f".repeat(40) }];
    const known = await findBuildTriggers(ledger, trigger, asked);
    expect(known.toSorted((a, b) => (a.ref < b.ref ? -1 : 1))).toEqual([
      { ...trigger, buildId: null, seenAt: expect.any(Date) },
      { ...claimed, buildId: "b1", seenAt: expect.any(Date) },
    ]);
    expect(await findBuildTriggers(ledger, { ...trigger, projectUid: "another" }, asked)).toEqual([]);
    expect(await findBuildTriggers(ledger, trigger, [])).toEqual([]);
  });
});

it("knows deliveries of hooks that were dealt with, for a while", async () => {
  const delivery = { organizationId: "acme", connectionId: "c1", deliveryId: "d1" };
  expect(await isGitDeliveryKnown(ledger, delivery)).toBe(false);
  await recordGitDelivery(ledger, delivery);
  await recordGitDelivery(ledger, delivery);
  expect(await isGitDeliveryKnown(ledger, delivery)).toBe(true);
  expect(await isGitDeliveryKnown(ledger, { ...delivery, connectionId: "c2" })).toBe(false);
  expect(await retireGitDeliveries(ledger, new Date(Date.now() + 1_000))).toBe(1);
});
