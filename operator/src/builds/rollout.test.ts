import type { Project } from "@slipway/crds";
import { expect, test } from "vitest";
import { exampleBuild } from "../../../test/kit/operator/builds.ts";
import { projectState } from "./observer.ts";

const digest = `sha256:${"a".repeat(64)}`;
const build = exampleBuild("bb", 5, { status: { phase: "building", image: { reference: "r", digest } } });
const at = "2026-01-01T00:00:05.000Z";

const project = (status: object, spec: object = {}): Project =>
  ({ metadata: { name: "pshop" }, spec: { type: "http", ...spec }, status }) as unknown as Project;
const handedOver = { build: { imageBuild: "bb", imageBuildAt: at, image: { reference: "r", digest } } };
const deployed = (status: string, of = digest) => ({
  ...handedOver,
  deployments: [{ status, image: { reference: "r", digest: of }, message: "why" }],
});

test("a deleted or terminating project publishes nothing", () => {
  expect(projectState(build, undefined)).toBeUndefined();
  const going = project(handedOver);
  going.metadata.deletionTimestamp = at;
  expect(projectState(build, going)).toBeUndefined();
});

test("the image of a newer build supersedes older builds", () => {
  const view = (imageBuild: string, imageBuildAt: string) =>
    projectState(build, project({ build: { imageBuild, imageBuildAt } }));
  expect(projectState(build, project({}))).toMatchObject({ isDeployed: false, isSuperseded: false });
  expect(view("bb", at)).toMatchObject({ isDeployed: true, isSuperseded: false });
  expect(view("bx", "2026-01-01T00:00:04.999Z")).toMatchObject({ isSuperseded: false });
  expect(view("bx", "2026-01-01T00:00:05.001Z")).toMatchObject({ isSuperseded: true });
  // At equal times names decide, as in the queue.
  expect(view("ba", at)).toMatchObject({ isSuperseded: false });
  expect(view("bc", at)).toMatchObject({ isSuperseded: true });
});

test("the newest deployment of the digest is its rollout", () => {
  const rollout = (status: object, spec?: object) => projectState(build, project(status, spec))?.rollout;
  expect(rollout(handedOver)).toBe("waiting");
  expect(rollout(deployed("in_progress"))).toBe("waiting");
  expect(rollout(deployed("succeeded"))).toBe("served");
  expect(rollout(deployed("superseded"))).toBe("waiting");
  expect(rollout(deployed("succeeded", `sha256:${"b".repeat(64)}`))).toBe("waiting");
  expect(projectState(build, project(deployed("failed")))).toMatchObject({
    rollout: "failed",
    rolloutMessage: "why",
  });
  // Nothing is rolled out: the next run uses it, or the project when it is resumed.
  expect(rollout(handedOver, { type: "job" })).toBe("served");
  expect(rollout(handedOver, { paused: true })).toBe("served");
});

test("a later rollback supersedes a build, although its image was deployed", () => {
  const rolledBack = (moment: string) => {
    const given = project(deployed("in_progress"));
    given.spec.rollback = { at: moment, digest: `sha256:${"c".repeat(64)}` };
    return projectState(build, given);
  };
  expect(rolledBack("2026-01-01T00:00:06Z")).toMatchObject({ isDeployed: false, isSuperseded: true });
  expect(rolledBack("2026-01-01T00:00:04Z")).toMatchObject({ isDeployed: true, isSuperseded: false });
});
