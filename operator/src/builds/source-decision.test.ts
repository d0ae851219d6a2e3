import { firstBuildId, labels, nextSourceRevision, type Project } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { asksLedger, CREATION_MS, decideSource } from "./source-decision.ts";

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
  test("of kubectl gets its first build at once, whatever its mode", () => {
    const decision = decideSource(project({ age: 0, source: { autoDeploy: false } }), false, now);
    expect(decision).toMatchObject({ do: "note", build: { asked: first } });
  });

  test("of a namesake that was created later gets a build of its own", () => {
    const one = decideSource(project(), false, now);
    const other = project();
    other.metadata.uid = "uid-2";
    expect(decideSource(other, false, now)).not.toEqual(one);
    expect(decideSource(project(), false, now)).toEqual(one);
  });

  test("that /v1 has created is left to it first, then gets the build that it would have asked for", () => {
    expect(decideSource(project({ ofApi: true, age: 10 }), false, now)).toEqual({
      do: "wait",
      afterMs: CREATION_MS - 10_000,
    });
    const mended = decideSource(project({ ofApi: true, age: 60 }), false, now);
    expect(mended).toEqual({ do: "note", build: { id: firstBuildId("pshop"), asked: first } });
  });

  test("that has a build is noted, and nothing else", () => {
    expect(decideSource(project(), true, now)).toEqual({ do: "note" });
    expect(decideSource(project({ ofApi: true, age: 1 }), true, now)).toEqual({ do: "note" });
  });

  test("that others changed is built where pushes are published, once for each change", () => {
    const changed = project({ noted: "before" });
    const decision = decideSource(changed, true, now);
    expect(decision).toMatchObject({
      do: "note",
      build: { asked: { triggeredBy: "settings", branch: "main" } },
    });
    changed.spec.sourceRevision = { number: 7, hash: "0123456789abcdef" };
    expect(decideSource(changed, true, now)).not.toEqual(decision);
    expect(decideSource(project({ noted: "before", source: { autoDeploy: false } }), true, now)).toEqual({
      do: "note",
    });
  });

  test("that is noted starts nothing", () => {
    const status: Project["status"] = { build: { lastBuild: "b1" } };
    expect(decideSource(project({ noted: "now", status }), true, now)).toEqual({ do: "nothing" });
    // As /v1 gives one to a project that runs an image.
    const deployment = { id: "d1" } as NonNullable<NonNullable<Project["status"]>["deployments"]>[number];
    const running = project({ noted: "now", status: { deployments: [deployment] } });
    expect(decideSource(running, false, now)).toEqual({ do: "nothing" });
  });

  test("of a project that was put back from an export is built", () => {
    expect(decideSource(project({ noted: "now" }), false, now)).toMatchObject({ build: { asked: first } });
  });

  test("that is gone is noted, for the next one", () => {
    const without = (of: Project): Project => {
      const { source: _source, build: _build, ...spec } = of.spec;
      return { ...of, spec };
    };
    expect(decideSource(without(project({ noted: "now" })), true, now)).toEqual({ do: "note" });
    const never = without(project());
    expect(decideSource(never, true, now)).toEqual({ do: "nothing" });
  });

  test("of a project that is being deleted starts nothing", () => {
    const deleted = project();
    deleted.metadata.deletionTimestamp = now.toISOString();
    expect(decideSource(deleted, false, now)).toEqual({ do: "nothing" });
  });
});

test("the ledger is asked only while no build is known and something hangs on it", () => {
  expect(asksLedger(project())).toBe(true);
  expect(asksLedger(project({ status: { build: { lastBuild: "b1" } } }))).toBe(false);
  expect(asksLedger(exampleProject({ namespace: "n", name: "p" }))).toBe(false);
  expect(asksLedger(project({ noted: "now", status: { buildFailure: { buildId: "b1" } } }))).toBe(false);
});
