import type { Build } from "@slipway/ledger";
import { describe, expect, it } from "vitest";
import { buildView, logView } from "./view.ts";

const at = new Date("2026-11-21T12:00:00.000Z");
const build: Build = {
  id: "b1",
  organization_id: "acme",
  project_id: "pshop",
  project_uid: "uid",
  triggered_by: "manual",
  branch: "main",
  tag: null,
  commit_sha: "a".repeat(40),
  commit_message: "First",
  status: "pending",
  digest: null,
  error_code: null,
  error_message: null,
  log_truncated: false,
  created_at: at,
  started_at: null,
  finished_at: null,
  ran_from: null,
  ran_until: null,
  updated_at: at,
};

describe("a build", () => {
  it("shows nothing of the cluster, and no failure that there was not", () => {
    expect(buildView(build)).toEqual({
      id: "b1",
      commit_sha: "a".repeat(40),
      branch: "main",
      status: "pending",
      started_at: null,
      finished_at: null,
      created_at: "2026-11-21T12:00:00.000Z",
      updated_at: "2026-11-21T12:00:00.000Z",
      triggered_by: "manual",
      diagnosis_status: "not_requested",
    });
  });

  it("shows why it failed, and the tag that it was built from", () => {
    const failed: Build = {
      ...build,
      status: "failed",
      tag: "v1",
      error_code: "BUILD_FAILED_UNCLASSIFIED",
      error_message: "no",
    };
    expect(buildView(failed)).toMatchObject({
      tag: "v1",
      error_code: "BUILD_FAILED_UNCLASSIFIED",
      error_message: "no",
    });
  });
});

describe("a read of a log", () => {
  const chunk = (sequence: number) => ({
    sequence,
    at,
    level: "info",
    step: "build",
    message: `line ${sequence}`,
    final: false,
  });

  it("continues after its last line", () => {
    const read = logView({ status: "building", log_truncated: false }, [chunk(7), chunk(1_000_001)], 3);
    expect(read).toMatchObject({
      next_cursor: 1_000_001,
      status: "building",
      finished: false,
      truncated: false,
    });
    expect(read.logs[0]).toEqual({
      sequence: 7,
      timestamp: "2026-11-21T12:00:00.000Z",
      level: "info",
      step: "build",
      message: "line 7",
      final: false,
    });
  });

  it("stays where it is when there is nothing new", () => {
    expect(logView({ status: "building", log_truncated: false }, [], 42).next_cursor).toBe(42);
  });

  it.each(["success", "failed", "superseded"] as const)("is finished once the build is %s", (status) => {
    expect(logView({ status, log_truncated: true }, [], 0)).toMatchObject({
      finished: true,
      truncated: true,
    });
  });
});
