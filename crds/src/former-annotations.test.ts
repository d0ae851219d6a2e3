import { describe, expect, it } from "vitest";
import type { DomainClaimSpec } from "./domainclaim.ts";
import { contendersOf, formerStatePatch, withFormerState } from "./former-annotations.ts";
import type { ProjectSpec } from "./project/index.ts";

const digest = `sha256:${"a".repeat(64)}`;
const hash = "0123456789abcdef";
const at = "2026-01-01T00:00:01.250Z";
const former = {
  "slipway.dev/rolled-back": `${at} ${digest}`,
  "slipway.dev/source-revision": `7:${hash}`,
  "slipway.dev/updated-at": at,
};
const spec: ProjectSpec = { type: "http", name: "shop-one", plan: "basic", paymentMode: "hourly" };
const project = (annotations?: Record<string, string>, more: Partial<ProjectSpec> = {}) => ({
  metadata: { name: "p1", uid: "u1", resourceVersion: "5", ...(annotations ? { annotations } : {}) },
  spec: { ...spec, ...more },
});
const state = { rollback: { at, digest }, sourceRevision: { number: 7, hash }, updatedAt: at };

describe("state that earlier versions kept in annotations", () => {
  it("is read as fields, and replaced by them in one patch of just this version of the object", () => {
    const own = { "example.com/note": "kept" };
    expect(withFormerState(project({ ...former, ...own }))).toEqual({ ...spec, ...state });
    expect(formerStatePatch(project({ ...former, ...own }))).toEqual({
      metadata: {
        uid: "u1",
        resourceVersion: "5",
        annotations: Object.fromEntries(Object.keys(former).map((name) => [name, null])),
      },
      spec: state,
    });
  });

  it("does not count where a field is set", () => {
    const rollback = { at: "2026-02-01T00:00:00Z", digest: `sha256:${"b".repeat(64)}` };
    expect(withFormerState(project(former, { rollback }))).toMatchObject({ ...state, rollback });
    expect(formerStatePatch(project(former, { rollback }))).toMatchObject({ spec: { ...state, rollback } });
  });

  it.each([
    ["slipway.dev/rolled-back", "soon"],
    ["slipway.dev/rolled-back", `2026-01-01T00:00:01Z other.example/x@${digest}`],
    ["slipway.dev/rolled-back", `2026-13-01T00:00:00Z ${digest}`],
    ["slipway.dev/source-revision", "many"],
    ["slipway.dev/source-revision", `:${hash}`],
    ["slipway.dev/updated-at", "yesterday"],
  ])("that nobody can read is removed: %s %s", (name, value) => {
    expect(withFormerState(project({ [name]: value }))).toEqual(spec);
    expect(formerStatePatch(project({ [name]: value }))).toMatchObject({
      metadata: { annotations: { [name]: null } },
    });
  });

  it("is not read again once it was converted", () => {
    const converted = project(undefined, state);
    expect(withFormerState(converted)).toBe(converted.spec);
    expect(formerStatePatch(converted)).toBeUndefined();
  });
});

describe("contenders for a hostname", () => {
  const claim = { hostname: "shop.example.com", organization: "a", kind: "custom" } as DomainClaimSpec;
  const metadata = { name: "shop.example.com", annotations: { "slipway.dev/wanted-by": "b,c" } };

  it("are read from the annotation of an earlier version until the field is written", () => {
    expect(contendersOf({ metadata, spec: claim })).toEqual(["b", "c"]);
    expect(contendersOf({ metadata, spec: { ...claim, contenders: ["d"] } })).toEqual(["d"]);
    expect(contendersOf({ metadata: { name: "shop.example.com" }, spec: claim })).toEqual([]);
  });
});
