import { describe, expect, it } from "vitest";
import { fixtureCases, kindOf, validFixtures } from "../../test/kit/crds/fixtures.ts";
import { ajvFailures, transitionFailures, zodFailures } from "../../test/kit/crds/layers.ts";
import { projectTypes } from "./project/types.ts";

describe("valid fixtures and documented examples", () => {
  it.each(validFixtures())("%s", (_, resource) => {
    expect(zodFailures(kindOf(resource), resource)).toEqual([]);
    expect(ajvFailures(kindOf(resource), resource)).toEqual([]);
  });

  it("cover every type of project", () => {
    const types = validFixtures().map(([, { kind, spec }]) => (kind === "Project" ? spec.type : undefined));
    expect(new Set(types.filter((type) => type !== undefined)).size).toBe(projectTypes.length);
  });
});

describe("invalid fixtures", () => {
  it.each(fixtureCases("invalid").map((one) => [one.name, one] as const))("%s", (_, one) => {
    const zod = zodFailures(one.kind, one.changed);
    expect(zod).not.toEqual([]);
    if (one.path !== undefined) {
      expect(zod.join("\n")).toContain(one.path);
    }
    if (one.message !== undefined) {
      expect(zod.join("\n")).toContain(one.message);
    }
    const ajv = ajvFailures(one.kind, one.changed);
    if (one.cel || !one.only.includes("ajv")) {
      expect(ajv).toEqual([]);
    } else {
      expect(ajv.join("\n")).toContain(one.path);
    }
  });

  it("break one thing each, so that no failure hides behind another", () => {
    const several = fixtureCases("invalid")
      .filter(({ cel }) => cel)
      .map(({ name, kind, changed }) => [name, zodFailures(kind, changed)] as const)
      .filter(([, failures]) => failures.length !== 1);
    expect(several).toEqual([]);
  });
});

describe("changes to what exists", () => {
  it.each(fixtureCases("update").map((one) => [one.name, one] as const))("%s", (_, one) => {
    const { kind, base, changed, path, message } = one;
    const failures = transitionFailures(kind, changed, base);
    if (message === undefined) {
      expect([...zodFailures(kind, changed), ...failures]).toEqual([]);
      return;
    }
    expect(failures.join("\n")).toContain(message);
    if (path !== undefined) {
      expect(failures.join("\n")).toContain(path);
    }
  });
});
