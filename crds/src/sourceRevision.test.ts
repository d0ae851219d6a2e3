import { describe, expect, it } from "vitest";
import { annotations } from "./names.ts";
import type { Project, ProjectSpec } from "./project/index.ts";
import { revisionNote, sourceRevision } from "./sourceRevision.ts";

const SOURCE_REVISION = annotations.sourceRevision;
const exampleSpec: ProjectSpec = {
  type: "http",
  name: "shop-one",
  plan: "basic",
  paymentMode: "hourly",
  image: { url: "registry.example.com/shop:1", isPublic: true },
};

const source = { connectionId: "g1", repositoryId: "r1", branch: "main", autoDeploy: false };
const project = (spec: Partial<Project["spec"]>, noted?: Record<string, string>) => ({
  metadata: { name: "p1", ...(noted ? { annotations: noted } : {}) },
  spec: { ...exampleSpec, ...spec },
});
const fromGit = (change: object = {}) => ({ image: undefined, source: { ...source, ...change }, build: {} });

describe("the revision of a source", () => {
  it("is 0 without one and 1 for the first", () => {
    expect(sourceRevision(project({}))).toBe(0);
    expect(sourceRevision(project(fromGit()))).toBe(1);
  });

  it("grows with each change, and with no other", () => {
    const first = project(fromGit());
    const second = project(
      fromGit({ branch: "next" }),
      revisionNote(project(fromGit({ branch: "next" })).spec, first),
    );
    expect(sourceRevision(second)).toBe(2);
    const same = revisionNote({ ...second.spec, name: "other-name" }, second);
    expect(same).toEqual({ [SOURCE_REVISION]: second.metadata.annotations?.[SOURCE_REVISION] });
    const removed = project({}, revisionNote(exampleSpec, second));
    expect(sourceRevision(removed)).toBe(3);
  });

  it("counts what others have changed as one change", () => {
    const noted = revisionNote(project(fromGit()).spec, project({}));
    expect(sourceRevision(project(fromGit(), noted))).toBe(1);
    expect(sourceRevision(project(fromGit({ branch: "next" }), noted))).toBe(2);
  });

  it("does not depend on the order of members, nor on a note that is none", () => {
    const { branch, ...rest } = source;
    const noted = revisionNote(project(fromGit()).spec, project({}));
    expect(sourceRevision(project({ image: undefined, source: { branch, ...rest }, build: {} }, noted))).toBe(
      1,
    );
    expect(sourceRevision(project(fromGit(), { [SOURCE_REVISION]: "many" }))).toBe(1);
  });
});
