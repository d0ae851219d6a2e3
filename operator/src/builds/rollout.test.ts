import type { Project } from "@slipway/crds";
import { expect, test } from "vitest";
import { exampleBuild } from "../../../test/kit/operator/builds.ts";
import { projectView } from "./rollout.ts";

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

test("a project that is gone, or going, has nothing to publish to", () => {
  expect(projectView(build, undefined)).toBeUndefined();
  const going = project(handedOver);
  going.metadata.deletionTimestamp = at;
  expect(projectView(build, going)).toBeUndefined();
});

test("whose image is to run decides who was overtaken: the one of a newer build", () => {
  const view = (imageBuild: string, imageBuildAt: string) =>
    projectView(build, project({ build: { imageBuild, imageBuildAt } }));
  expect(projectView(build, project({}))).toMatchObject({ isHandedOver: false, isOvertaken: false });
  expect(view("bb", at)).toMatchObject({ isHandedOver: true, isOvertaken: false });
  expect(view("bx", "2026-01-01T00:00:04.999Z")).toMatchObject({ isOvertaken: false });
  expect(view("bx", "2026-01-01T00:00:05.001Z")).toMatchObject({ isOvertaken: true });
  // Of the same moment, names decide, as they do for which is newer.
  expect(view("ba", at)).toMatchObject({ isOvertaken: false });
  expect(view("bc", at)).toMatchObject({ isOvertaken: true });
});

test("the newest deployment of the digest is what became of it", () => {
  const rollout = (status: object, spec?: object) => projectView(build, project(status, spec))?.rollout;
  expect(rollout(handedOver)).toBe("waiting");
  expect(rollout(deployed("in_progress"))).toBe("waiting");
  expect(rollout(deployed("succeeded"))).toBe("served");
  expect(rollout(deployed("superseded"))).toBe("waiting");
  expect(rollout(deployed("succeeded", `sha256:${"b".repeat(64)}`))).toBe("waiting");
  expect(projectView(build, project(deployed("failed")))).toMatchObject({
    rollout: "failed",
    rolloutMessage: "why",
  });
  // Nothing is rolled out: the next run takes it, or the project as it goes on.
  expect(rollout(handedOver, { type: "job" })).toBe("served");
  expect(rollout(handedOver, { paused: true })).toBe("served");
});

test("a rollback that was asked for later overtakes a build, although its image was handed over", () => {
  const rolledBack = (moment: string) => {
    const given = project(deployed("in_progress"));
    given.spec.rollback = { at: moment, digest: `sha256:${"c".repeat(64)}` };
    return projectView(build, given);
  };
  expect(rolledBack("2026-01-01T00:00:06Z")).toMatchObject({ isHandedOver: false, isOvertaken: true });
  expect(rolledBack("2026-01-01T00:00:04Z")).toMatchObject({ isHandedOver: true, isOvertaken: false });
});
