import type { Build, Project } from "@slipway/crds";
import { expect, test } from "vitest";
import { exampleBuild } from "../../../test/kit/operator/builds.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { projectOf } from "./completion.ts";

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
