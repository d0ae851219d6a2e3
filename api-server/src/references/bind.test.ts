import type { Project } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { databaseSpec } from "../../../test/kit/api-server/databases.ts";
import { exampleSpec } from "../../../test/kit/api-server/harness.ts";
import { GrantSet, parseGrant } from "../policy/permissions.ts";
import { bindReferences } from "./bind.ts";

type Declared = NonNullable<NonNullable<Project["spec"]["envsFrom"]>[number]["references"]>;

const project = (id: string, spec: Project["spec"]): Project =>
  ({ metadata: { name: id, namespace: "slipway-org-acme" }, spec }) as Project;
const database = (id: string, name: string) => project(id, databaseSpec("postgresql", { name }));
const app = (references: Declared, id = "app") =>
  project(id, { ...exampleSpec, name: id, envsFrom: [{ name: `${id}-env-1`, references }] });

/** What the references become when a caller with these grants sends them for this project. */
function bind(self: Project, others: readonly Project[], texts: readonly string[], ...grants: string[]) {
  const variables = texts.map((text, index) => ({ name: `V${index}`, value: `\${project:${text}}` }));
  const referrer = { type: self.spec.type, grants: GrantSet.of(grants.map(parseGrant)), self };
  return Object.fromEntries(bindReferences(variables, referrer, [self, ...others]) ?? []);
}

describe("a name that one project had, and another has by now", () => {
  const others = [database("theirs", "shop-db"), database("mine", "shop-db")];
  const ofMine = ["project.read on project:mine", "database.credentials.renew on project:mine"];
  const username = { reference: "shop-db.username", project: "theirs" };
  const password = { reference: "shop-db.password", project: "mine" };
  const both = ["shop-db.username", "shop-db.password"];
  const wanted = { "shop-db.username": "theirs", "shop-db.password": "mine" };

  it("leads to the caller's own where it is new, and leaves what is bound", () => {
    expect(bind(app([username]), others, both, ...ofMine)).toEqual(wanted);
  });

  // Shows: docs/references.md#names-and-ids: To write the variables again keeps what is bound.
  it("keeps each reference at the very project that it is bound to, in any order", () => {
    expect(bind(app([password, username]), others, both, ...ofMine)).toEqual(wanted);
    expect(bind(app([username, password]), others, both, ...ofMine)).toEqual(wanted);
    expect(bind(app([username, password]), others, both)).toEqual(wanted);
  });

  it("is looked up for another member, when what is bound has two projects", () => {
    const every = ["project.read on project:*"];
    const self = app([password, username]);
    expect(bind(self, others, ["shop-db.host"], ...ofMine)).toEqual({ "shop-db.host": "mine" });
    expect(() => bind(self, others, ["shop-db.host"], ...every)).toThrow(
      expect.objectContaining({ code: "REFERENCE_AMBIGUOUS" }),
    );
  });

  it("leads to the project of what is bound for another member, to who may read that", () => {
    const others = [database("first", "renamed"), database("second", "shop-db")];
    const self = app([{ reference: "shop-db.username", project: "first" }]);
    const host = (...grants: string[]) => bind(self, others, ["shop-db.host"], ...grants)["shop-db.host"];
    expect(host("project.read on project:*")).toBe("first");
    expect(host("project.read on project:second")).toBe("second");
  });

  it("needs the permission where two Secrets of the project bind one reference to two projects", () => {
    const self = app([{ reference: "shop-db.password", project: "theirs" }]);
    self.spec.envsFrom?.push({ name: "own", references: [password] });
    expect(bind(self, others, ["shop-db.password"], ...ofMine)).toEqual({ "shop-db.password": "mine" });
    expect(() => bind(self, others, ["shop-db.password"])).toThrow(
      expect.objectContaining({ code: "REFERENCE_UNKNOWN" }),
    );
  });
});
