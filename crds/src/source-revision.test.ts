import { describe, expect, it } from "vitest";
import type { Project, ProjectSpec } from "./project/index.ts";
import { nextSourceRevision, recordedSource, sourceRevision } from "./source-revision.ts";

const exampleSpec: ProjectSpec = {
  type: "http",
  name: "shop-one",
  plan: "basic",
  paymentMode: "hourly",
  image: { url: "registry.example.com/shop:1", isPublic: true },
};

const source = { connectionId: "g1", repositoryId: "r1", branch: "main", autoDeploy: false };
const project = (spec: Partial<ProjectSpec>): Pick<Project, "metadata" | "spec"> => ({
  metadata: { name: "p1" },
  spec: { ...exampleSpec, ...spec },
});
const fromGit = (change: object = {}) => ({ image: undefined, source: { ...source, ...change }, build: {} });
const recorded = nextSourceRevision(project(fromGit()).spec, project({}));

describe("the revision of a source", () => {
  it("is 0 without one and 1 for the first", () => {
    expect(sourceRevision(project({}))).toBe(0);
    expect(sourceRevision(project(fromGit()))).toBe(1);
  });

  it("grows with each change, and with no other", () => {
    const first = project(fromGit());
    const next = fromGit({ branch: "next" });
    const second = project({ ...next, sourceRevision: nextSourceRevision(project(next).spec, first) });
    expect(sourceRevision(second)).toBe(2);
    expect(nextSourceRevision({ ...second.spec, name: "other-name" }, second)).toEqual(
      second.spec.sourceRevision,
    );
    expect(sourceRevision(project({ sourceRevision: nextSourceRevision(exampleSpec, second) }))).toBe(3);
  });

  it("counts what others have changed as one change", () => {
    expect(sourceRevision(project({ ...fromGit(), sourceRevision: recorded }))).toBe(1);
    expect(sourceRevision(project({ ...fromGit({ branch: "next" }), sourceRevision: recorded }))).toBe(2);
  });

  it("does not depend on the order of members", () => {
    const { branch, ...rest } = source;
    const reordered = { image: undefined, source: { branch, ...rest }, build: {} };
    expect(sourceRevision(project({ ...reordered, sourceRevision: recorded }))).toBe(1);
  });

  it("is read from the annotation of an earlier version until the operator has converted it", () => {
    const former = (value: string, spec: Partial<ProjectSpec>) => ({
      ...project(spec),
      metadata: { name: "p1", annotations: { "slipway.dev/source-revision": value } },
    });
    expect(sourceRevision(former(`4:${recorded.hash}`, fromGit()))).toBe(4);
    expect(recordedSource(former(`4:${recorded.hash}`, fromGit()))).toBe("now");
    expect(sourceRevision(former(`4:${recorded.hash}`, fromGit({ branch: "next" })))).toBe(5);
    expect(sourceRevision(former("many", fromGit()))).toBe(1);
  });
});
