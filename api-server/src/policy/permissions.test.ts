import { describe, expect, it } from "vitest";
import { EVERY_GRANT, GrantSet, parseGrant } from "./permissions.ts";

const set = (...texts: string[]) => GrantSet.of(texts.map(parseGrant));

describe("GrantSet", () => {
  // Shows: docs/applications.md#authentication: 4. grants on `organization:*`, `project:*`
  it("reads one project with a grant on it, and no other", () => {
    const grants = set("project.read on project:p1");
    expect(grants.onProject("project.read", "p1")).toBe(true);
    expect(grants.onProject("project.read", "p2")).toBe(false);
    expect(grants.onProject("project.delete", "p1")).toBe(false);
  });

  // Shows: docs/applications.md#authentication: 4. grants on `organization:*`, `project:*`
  it("does not take a grant on the organization for one on its projects, nor the other way round", () => {
    expect(set("project.read on organization:*").onProject("project.read", "p1")).toBe(false);
    expect(set("project.create on project:*").onOrganization("project.create")).toBe(false);
  });

  // Shows: docs/exec.md#who-may: no key has it by `*`
  it("lets a key with every grant run no commands in instances, unless it is granted by name", () => {
    expect(GrantSet.of(EVERY_GRANT).onProject("project.exec", "p1")).toBe(false);
    expect(set("* on project:p1").onProject("project.exec", "p1")).toBe(false);
    expect(set("* on project:*", "project.exec on project:p1").onProject("project.exec", "p1")).toBe(true);
    expect(set("project.exec on project:*").onEveryProject("project.exec")).toBe(true);
    expect(GrantSet.full().onProject("project.exec", "p1")).toBe(true);
  });

  it("lets a key with every grant do everything else, and one with none nothing", () => {
    const every = GrantSet.of(EVERY_GRANT);
    expect(every.onProject("project.delete", "p1") && every.onOrganization("database.create")).toBe(true);
    expect(set().onProject("project.read", "p1") || set().onOrganization("project.create")).toBe(false);
  });
});

describe("parseGrant", () => {
  it("reads permission and resource", () => {
    expect(parseGrant(" project.read  on project:p1 ")).toEqual({
      permission: "project.read",
      resource: "project:p1",
    });
  });

  it.each([
    "project.read",
    "project.raed on project:*",
    "project.read on projects:*",
    "project.read on project:P_1",
    "",
  ])("refuses %j", (text) => {
    expect(() => parseGrant(text)).toThrow();
  });
});
