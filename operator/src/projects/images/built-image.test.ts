import { ConditionSet } from "@slipway/controller-runtime";
import type { Project, ProjectConditionCatalog, Rollback } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import { exampleProject } from "../../../../test/kit/operator/projects.ts";
import { TerminalError, WaitingError } from "../../reconcile-errors.ts";
import { refuseUnbuilt } from "../accept.ts";
import { settingsOf } from "../deployments/deployments.ts";
import { builtImage, requireBuilt, setBuildCondition, withBuiltImage } from "./built-image.ts";

const digest = (letter: string) => `sha256:${letter.repeat(64)}`;
const url = "builds.example/alpha/p1";
const at = "2026-01-01T00:00:00.000Z";
const built = { imageBuild: "b2", imageBuildAt: at, image: { reference: url, digest: digest("b") } };

function project(status: Project["status"] = {}, rollback?: Rollback): Project {
  const { spec, ...rest } = exampleProject({ namespace: "slipway-org-alpha", name: "p1" });
  const { image: _image, ...others } = spec;
  const source = { connectionId: "g1", repositoryId: "r1", branch: "main", autoDeploy: true };
  return {
    ...rest,
    spec: { ...others, source, build: {}, ...(rollback ? { rollback } : {}) },
    status,
  };
}

const conditionOf = (of: Project) => {
  const conditions = new ConditionSet<ProjectConditionCatalog>([], { now: new Date(at) });
  setBuildCondition(of, conditions);
  return conditions.get("BuildSucceeded");
};

test("what a build has left is run by digest, with the organization's Secret", () => {
  const given = withBuiltImage(project({ build: built }));
  expect(given.spec.image).toEqual({
    url,
    digest: digest("b"),
    isPublic: false,
    pullSecretRef: { name: "slipway-builds-registry" },
  });
  expect(settingsOf(given).image).toEqual(given.spec.image);
  const own = exampleProject({ namespace: "slipway-org-alpha", name: "p1" });
  expect(withBuiltImage({ ...own, status: { build: built } })).toMatchObject({
    spec: { image: own.spec.image },
  });
});

describe("a rollback", () => {
  const digestAfter = (moment: string) =>
    builtImage(project({ build: built }, { at: moment, digest: digest("a") }))?.digest;

  test("has an earlier image run, until a build that was requested later has one", () => {
    expect(digestAfter("2026-01-01T00:00:01Z")).toBe(digest("a"));
    expect(digestAfter("2026-01-01T00:00:00Z")).toBe(digest("a"));
    expect(digestAfter("2025-12-31T23:59:59.999Z")).toBe(digest("b"));
  });
});

test("without an image a project waits for its build, and a first build that failed is reported", () => {
  expect(() => requireBuilt(project())).toThrow(WaitingError);
  expect(conditionOf(project())).toMatchObject({ status: "False", reason: "BuildPending" });
  const buildFailure = { buildId: "b1", code: "BUILD_COMMAND_FAILED", message: "npm run build has failed." };
  const failed = project({ buildFailure });
  expect(() => requireBuilt(failed)).toThrow(TerminalError);
  expect(() => requireBuilt(failed)).toThrow("npm run build has failed.");
  expect(() => requireBuilt(project({ buildFailure, build: { lastBuild: "b2" } }))).toThrow(WaitingError);
});

test("a failed build leaves what serves as it is", () => {
  const failed = project({ build: { ...built, publishedBuild: "b2" }, buildFailure: { buildId: "b3" } });
  expect(() => requireBuilt(failed)).not.toThrow();
  expect(builtImage(failed)?.digest).toBe(digest("b"));
  expect(conditionOf(failed)).toMatchObject({ status: "False", reason: "BuildFailed" });
  const good = project({ build: { ...built, publishedBuild: "b2" } });
  expect(conditionOf(good)).toMatchObject({ status: "True", reason: "BuildSucceeded" });
});

test("where nothing is built, a project from Git is refused", () => {
  expect(() => refuseUnbuilt(project(), false)).toThrow(TerminalError);
  expect(() => refuseUnbuilt(project(), true)).not.toThrow();
  expect(() => refuseUnbuilt(exampleProject({ namespace: "n", name: "p" }), false)).not.toThrow();
});
