import type { Build, Project } from "@slipway/crds";
import { expect, test, vi } from "vitest";
import { exampleBuild } from "../../../test/kit/operator/builds.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { buildResource } from "../resources.ts";
import { BuildCompletion, projectOf } from "./completion.ts";

const live = (uid: string): Project => {
  const project = exampleProject({ namespace: "slipway-org-alpha", name: "pshop" });
  return { ...project, metadata: { ...project.metadata, uid } };
};
const owned = (name: string): Build => {
  const build = exampleBuild("b1", 0);
  const owner = { apiVersion: "slipway.dev/v1alpha1", kind: "Project", name, uid: "uid-1" };
  return { ...build, metadata: { ...build.metadata, ownerReferences: [owner] } };
};

test("a build whose project was deleted or recreated belongs to the project in its owner reference", () => {
  expect(projectOf(owned("pshop"), undefined)?.metadata).toEqual({
    name: "pshop",
    namespace: "slipway-org-alpha",
    uid: "uid-1",
  });
  expect(projectOf(owned("pshop"), live("uid-2"))?.metadata.uid).toBe("uid-1");
  const same = live("uid-1");
  expect(projectOf(owned("pshop"), same)).toBe(same);
});

test("a build without an owner reference belongs to the existing project", () => {
  expect(projectOf(exampleBuild("b1", 0), undefined)).toBeUndefined();
  const other = live("uid-2");
  expect(projectOf(exampleBuild("b1", 0), other)).toBe(other);
  expect(projectOf(owned("another"), other)).toBe(other);
});

test("an ended build loses its pods immediately, and is deleted as it was read after its retention", async () => {
  const clock = new FakeClock("2026-03-01T00:00:00Z");
  const calls = { delete: vi.fn(), remove: vi.fn(), forget: vi.fn() };
  const completion = new BuildCompletion({
    clock,
    client: { delete: calls.delete },
    cluster: { podsOfBuild: () => [{ metadata: { name: "b1-1" } }], remove: calls.remove },
    follower: { forget: calls.forget },
    settings: () => ({ keptSeconds: 600 }),
  } as never);
  const build: Build = {
    ...owned("pshop"),
    status: { finishedAt: "2026-02-28T23:59:00Z" } as Build["status"],
  };
  const { signal } = new AbortController();

  expect(await completion.cleanUp(build, signal)).toEqual({ requeueAfterMs: 540_000 });
  expect(calls.remove).toHaveBeenCalledWith([{ metadata: { name: "b1-1" } }], signal);
  expect(calls.forget).toHaveBeenCalledWith({ organizationId: "alpha", buildId: "b1" });
  expect(calls.delete).not.toHaveBeenCalled();

  await clock.advance(540_000);
  expect(await completion.cleanUp(build, signal)).toBeUndefined();
  const { name, namespace, uid } = build.metadata;
  expect(calls.delete.mock.calls).toEqual([[buildResource, { name, namespace }, { uid, signal }]]);
});

test("a build has not ended until the ledger has its result, however often that fails", async () => {
  const failing = vi
    .fn()
    .mockRejectedValueOnce(new Error("terminating connection due to administrator command"));
  const calls = { storeLog: vi.fn(), ended: vi.fn() };
  const completion = new BuildCompletion({
    clock: new FakeClock("2026-03-01T00:00:00Z"),
    follower: { isTruncated: () => false },
    metrics: { ended: calls.ended },
    record: failing,
    storeLog: calls.storeLog,
  } as never);
  const before = {
    phase: "building",
    step: "build",
    ranFrom: "2026-02-28T23:50:00.000Z",
    ranUntil: "2026-02-28T23:59:00.000Z",
  } as NonNullable<Build["status"]>;
  const status = { ...before };
  const { signal } = new AbortController();
  const end = { phase: "failed", failure: { code: "BUILD_COMMAND_FAILED", message: "exit code 1" } } as const;
  const complete = () =>
    completion.complete({ ...owned("pshop"), status: before }, undefined, status, end, signal);

  // The row of a project that is gone.
  await expect(complete()).rejects.toThrow("terminating connection");
  expect(status).toEqual(before);
  failing
    .mockResolvedValueOnce(undefined)
    .mockRejectedValueOnce(new Error("timeout exceeded when trying to connect"));
  await expect(complete()).rejects.toThrow("timeout exceeded");
  calls.storeLog.mockRejectedValueOnce(new Error("canceling statement due to statement timeout"));
  await expect(complete()).rejects.toThrow("statement timeout");
  expect(status).toEqual(before);
  expect(calls.ended).not.toHaveBeenCalled();

  await complete();
  const ended = { phase: "failed", errorCode: "BUILD_COMMAND_FAILED", errorMessage: "exit code 1" };
  expect(status).toEqual({ ...before, ...ended, finishedAt: "2026-03-01T00:00:00.000Z" });
  expect(failing).toHaveBeenLastCalledWith(
    expect.objectContaining({
      status: "failed",
      error_code: "BUILD_COMMAND_FAILED",
      ran_from: new Date("2026-02-28T23:50:00Z"),
      ran_until: new Date("2026-02-28T23:59:00Z"),
    }),
  );
  expect(calls.ended).toHaveBeenCalledTimes(1);
});
