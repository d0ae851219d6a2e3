import type { Project } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { databaseSpec } from "../../../test/kit/api-server/databases.ts";
import { exampleSpec } from "../../../test/kit/api-server/harness.ts";
import { GrantSet, parseGrant } from "../policy/permissions.ts";
import { bindReferences, bindSources } from "./bind.ts";

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

describe("references of an earlier deployment", () => {
  const shop = database("shop", "shop-db");
  const api = app([{ reference: "app.host", project: "app" }], "api");
  const reader = ["project.read on project:shop"];
  const owner = [...reader, "database.credentials.renew on project:shop"];
  const toShop = (member: string): Declared[number] => ({ reference: `shop-db.${member}`, project: "shop" });
  /** What this reference becomes when a project that has the others returns to it. */
  function back(one: Declared[number], present: Declared, ...grants: string[]) {
    const self = app(present);
    const referrer = { type: self.spec.type, grants: GrantSet.of(grants.map(parseGrant)), self };
    const sources = [{ name: "literal" }, { name: "app-env-0", references: [one] }];
    const [literal, bound] = bindSources(sources, referrer, [self, shop, api]);
    expect(literal).toEqual({ name: "literal" });
    return bound?.references;
  }
  const refusal = (code: string) => expect.objectContaining({ code });

  it("that the project has now need nothing, not even that it leads anywhere", () => {
    expect(back(toShop("password"), [toShop("password")])).toEqual([toShop("password")]);
    const gone = { reference: "old-db.password", project: "gone" };
    const unbound = { reference: "later-db.password" };
    expect([back(gone, [gone]), back(unbound, [unbound])]).toEqual([[gone], [unbound]]);
  });

  it("need the permissions of writing them", () => {
    expect(back(toShop("host"), [], ...reader)).toEqual([toShop("host")]);
    expect(back(toShop("password"), [toShop("host")], ...owner)).toEqual([toShop("password")]);
    expect(() => back(toShop("host"), [])).toThrow(refusal("REFERENCE_UNKNOWN"));
    for (const member of ["password", "connection_string"]) {
      expect(() => back(toShop(member), [toShop("host")], ...reader)).toThrow(
        expect.objectContaining({
          code: "PERMISSION_DENIED",
          extra: expect.objectContaining({ required: ["database.credentials.renew on project:shop"] }),
        }),
      );
    }
  });

  it("are not those of the same text that are bound to another project", () => {
    const elsewhere = { reference: "shop-db.password", project: "api" };
    expect(() => back(toShop("password"), [elsewhere], ...reader)).toThrow(refusal("PERMISSION_DENIED"));
    const unbound = { reference: "shop-db.password" };
    expect(() => back(toShop("password"), [unbound], ...reader)).toThrow(refusal("PERMISSION_DENIED"));
  });

  it("to a deleted project are refused, also when another one has its name", () => {
    const gone = { reference: "shop-db.host", project: "gone" };
    expect(() => back(gone, [], ...owner)).toThrow(
      expect.objectContaining({
        status: 400,
        code: "REFERENCE_UNKNOWN",
        extra: expect.objectContaining({
          errors: [expect.objectContaining({ field: "deployment_id -> shop-db.host" })],
        }),
      }),
    );
  });

  it("that name no id are bound to the project that the caller may refer to", () => {
    expect(back({ reference: "shop-db.password" }, [], ...owner)).toEqual([toShop("password")]);
    expect(() => back({ reference: "shop-db.password" }, [], ...reader)).toThrow(
      refusal("PERMISSION_DENIED"),
    );
  });

  it("that lead back to the project by now are refused", () => {
    const toApi = { reference: "api.host", project: "api" };
    expect(() => back(toApi, [], "project.read on project:*")).toThrow(refusal("REFERENCE_CYCLE"));
  });
});

describe("500 projects with 100 references each", () => {
  const targets = Array.from({ length: 100 }, (_, index) => `p${index}`);
  /** Every project refers to the first hundred, half of them by name; counts how often names and references are read. */
  function organization(isCyclic: boolean) {
    const reads = { names: 0, references: 0 };
    const projects = Array.from({ length: 500 }, (_, index) => {
      const references = targets.map((id, at) =>
        at % 2 === 0 ? { reference: `${id}.host`, project: id } : { reference: `name-of-${id}.host` },
      );
      if (isCyclic && index === 499) {
        references.push({ reference: "app.host", project: "app" });
      }
      const one = app(references, `p${index}`);
      const spec = {
        ...one.spec,
        get name() {
          reads.names += 1;
          return `name-of-p${index}`;
        },
        get envsFrom() {
          reads.references += 1;
          return one.spec.envsFrom;
        },
      };
      return { ...one, spec };
    });
    return { reads, projects };
  }
  const texts = targets.map((id, at) => (at % 2 === 0 ? `${id}.host` : `name-of-${id}.host`));
  const everything = "project.read on project:*";

  it("are looked through once, not once for each reference", () => {
    const { reads, projects } = organization(false);
    const bound = bind(app([]), projects, texts, everything);
    expect([bound["p0.host"], bound["name-of-p99.host"]]).toEqual(["p0", "p99"]);
    expect(reads.references).toBeLessThanOrEqual(500);
    expect(reads.names).toBeLessThanOrEqual(3 * 500);
  });

  it("are searched together for the ways back, each of which is named", () => {
    const { reads, projects } = organization(true);
    const attempt = () => bind(app([]), projects, [...texts.slice(0, 99), "p499.host"], everything);
    expect(attempt).toThrow(
      expect.objectContaining({
        extra: expect.objectContaining({
          errors: [
            {
              field: "envs.V99 -> p499.host",
              code: "REFERENCE_CYCLE",
              message: "the reference leads back to the project: app -> name-of-p499 -> app",
            },
          ],
        }),
      }),
    );
    expect(reads.references).toBeLessThanOrEqual(500);
  });
});

it("names the shortest way of every reference that leads back", () => {
  const refersTo = (id: string, ...others: string[]) =>
    app(
      others.map((other) => ({ reference: `${other}.host`, project: other })),
      id,
    );
  const others = [
    refersTo("a", "b", "c"),
    refersTo("b", "c"),
    refersTo("c", "app"),
    refersTo("d", "e"),
    refersTo("e", "d"),
  ];
  const send = (...grants: string[]) =>
    bind(app([], "app"), others, ["a.host", "c.host", "d.host"], ...grants);
  const errorsOf = (...grants: string[]) => {
    try {
      return send(...grants);
    } catch (error) {
      return (error as { extra: { errors: { message: string }[] } }).extra.errors.map(
        ({ message }) => message,
      );
    }
  };
  const way = "the reference leads back to the project:";
  expect(errorsOf("project.read on project:*")).toEqual([
    `${way} app -> a -> c -> app`,
    `${way} app -> c -> app`,
  ]);
  const some = ["app", "a", "d"].map((id) => `project.read on project:${id}`);
  expect(errorsOf(...some)).toContain(`${way} app -> a -> another project -> app`);
});
