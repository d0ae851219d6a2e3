import { firstBuildId, labels, nextSourceRevision, type Project } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { API_CREATION_GRACE_MS, decideSource, needsBuildHistory } from "./source-reconciler.ts";

const now = new Date("2026-01-01T00:10:00Z");
const source = { connectionId: "g1", repositoryId: "r1", branch: "main", autoDeploy: true };

interface Given {
  source?: Partial<typeof source>;
  /** Seconds since it was created. */
  age?: number;
  ofApi?: boolean;
  noted?: "now" | "before";
  status?: Project["status"];
}

function project({ source: more, age = 300, ofApi = false, noted, status }: Given = {}): Project {
  const {
    metadata,
    spec: whole,
    ...rest
  } = exampleProject({ namespace: "slipway-org-alpha", name: "pshop" });
  const { image: _image, ...kept } = whole;
  const spec = { ...kept, source: { ...source, ...more }, build: {} };
  const old = noted === "before" ? { ...spec, source: { ...spec.source, branch: "old" } } : spec;
  return {
    ...rest,
    spec: { ...spec, ...(noted ? { sourceRevision: nextSourceRevision(old, { metadata, spec: old }) } : {}) },
    status,
    metadata: {
      ...metadata,
      uid: "uid-1",
      creationTimestamp: new Date(now.getTime() - age * 1_000).toISOString(),
      ...(ofApi ? { labels: { [labels.project]: "pshop" } } : {}),
    },
  };
}

const first = { triggeredBy: "creation", branch: "main" };

describe("a source", () => {
  test("of kubectl gets its first build immediately, in any mode", () => {
    const decision = decideSource(project({ age: 0, source: { autoDeploy: false } }), false, now);
    expect(decision).toMatchObject({ do: "record", build: { request: first } });
  });

  test("of a namesake that was created later gets a build of its own", () => {
    const one = decideSource(project(), false, now);
    const other = project();
    other.metadata.uid = "uid-2";
    expect(decideSource(other, false, now)).not.toEqual(one);
    expect(decideSource(project(), false, now)).toEqual(one);
  });

  test("that /v1 has created is left to it first, then gets the build that it would have requested", () => {
    expect(decideSource(project({ ofApi: true, age: 10 }), false, now)).toEqual({
      do: "wait",
      afterMs: API_CREATION_GRACE_MS - 10_000,
    });
    const mended = decideSource(project({ ofApi: true, age: 60 }), false, now);
    expect(mended).toEqual({ do: "record", build: { id: firstBuildId("pshop"), request: first } });
  });

  test("that has a build is only recorded", () => {
    expect(decideSource(project(), true, now)).toEqual({ do: "record" });
    expect(decideSource(project({ ofApi: true, age: 1 }), true, now)).toEqual({ do: "record" });
  });

  test("that others changed is built where pushes are published, once for each change", () => {
    const changed = project({ noted: "before" });
    const decision = decideSource(changed, true, now);
    expect(decision).toMatchObject({
      do: "record",
      build: { request: { triggeredBy: "settings", branch: "main" } },
    });
    changed.spec.sourceRevision = { number: 7, hash: "0123456789abcdef" };
    expect(decideSource(changed, true, now)).not.toEqual(decision);
    expect(decideSource(project({ noted: "before", source: { autoDeploy: false } }), true, now)).toEqual({
      do: "record",
    });
  });

  test("that is recorded starts nothing", () => {
    const status: Project["status"] = { build: { lastBuild: "b1" } };
    expect(decideSource(project({ noted: "now", status }), true, now)).toEqual({ do: "nothing" });
    // As /v1 sets one for a project that runs an image.
    const deployment = { id: "d1" } as NonNullable<NonNullable<Project["status"]>["deployments"]>[number];
    const running = project({ noted: "now", status: { deployments: [deployment] } });
    expect(decideSource(running, false, now)).toEqual({ do: "nothing" });
  });

  test("of a project that was restored from an export is built", () => {
    expect(decideSource(project({ noted: "now" }), false, now)).toMatchObject({ build: { request: first } });
  });

  test("that was removed is recorded, for the next one", () => {
    const without = (of: Project): Project => {
      const { source: _source, build: _build, ...spec } = of.spec;
      return { ...of, spec };
    };
    expect(decideSource(without(project({ noted: "now" })), true, now)).toEqual({ do: "record" });
    const never = without(project());
    expect(decideSource(never, true, now)).toEqual({ do: "nothing" });
  });

  test("of a project that is being deleted starts nothing", () => {
    const deleted = project();
    deleted.metadata.deletionTimestamp = now.toISOString();
    expect(decideSource(deleted, false, now)).toEqual({ do: "nothing" });
  });
});

test("the ledger is only queried while no build is known and the decision depends on it", () => {
  expect(needsBuildHistory(project())).toBe(true);
  expect(needsBuildHistory(project({ status: { build: { lastBuild: "b1" } } }))).toBe(false);
  expect(needsBuildHistory(exampleProject({ namespace: "n", name: "p" }))).toBe(false);
  expect(needsBuildHistory(project({ noted: "now", status: { buildFailure: { buildId: "b1" } } }))).toBe(
    false,
  );
});
