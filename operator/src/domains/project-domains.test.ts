import type { Project } from "@slipway/crds";
import { expect, test } from "vitest";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { type ExposureProgress, exposureAfter, exposureAtStart } from "./project-domains.ts";

type Exposure = NonNullable<Project["status"]>["exposure"];

function project(exposure: "public" | "private" | undefined, before?: Exposure): Project {
  const example = exampleProject({ namespace: "slipway-org-alpha", name: "p1" }, { exposure });
  return { ...example, status: before && { exposure: before } };
}

const isPublic = { current: "public" } as const;
const isPrivate = { current: "private" } as const;
const opening = { current: "private", changing: true } as const;
const closing = { current: "public", changing: true } as const;

test.each<[string, Project, Exposure]>([
  ["a new project is as asked", project("public"), isPublic],
  ["an unchanged one stays", project("private", isPrivate), isPrivate],
  ["another exposure begins a change", project("private", isPublic), closing],
  ["a change continues", project("public", opening), opening],
  ["a change that is reverted is a change, too", project("public", closing), closing],
  ["a project without exposure has none", project(undefined), undefined],
])("at the start: %s", (_, of, expected) => {
  expect(exposureAtStart(of)).toEqual(expected);
});

test.each<[string, Project, ExposureProgress, Exposure]>([
  ["a change that is done has ended", project("private", closing), "done", isPrivate],
  ["a change that moves continues", project("private", isPublic), "moving", closing],
  ["a change that is refused has ended where it was", project("public", opening), "refused", isPrivate],
  ["a change that was reverted is done", project("public", closing), "done", isPublic],
  ["a route that falters later is no change", project("public", isPublic), "moving", isPublic],
])("after: %s", (_, of, progress, expected) => {
  expect(exposureAfter(of, progress)).toEqual(expected);
});
