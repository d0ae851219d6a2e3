import { organizationNamespace, type Project } from "@slipway/crds";
import { beforeEach, describe, expect, it } from "vitest";
import { ApiProject } from "./api-project.ts";
import { OrganizationIndex, type SortField } from "./organization-index.ts";

let made = 0;
let index: OrganizationIndex;
beforeEach(() => {
  made = 0;
  index = new OrganizationIndex((project) => {
    made += 1;
    return new ApiProject(project, { updatedAt: updatedAt(project), zone: "apps.localhost" });
  });
});

const updatedAt = ({ metadata }: Project) => metadata.annotations?.updated ?? "";

interface Options {
  organization?: string;
  /** Of its creation, and of its last update. */
  day?: number;
  updated?: number;
  version?: string;
}

function project(
  id: string,
  { organization = "acme", day = 1, updated = day, version = "1" }: Options = {},
): Project {
  return {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: {
      name: id,
      namespace: organization === "" ? "default" : organizationNamespace(organization),
      creationTimestamp: `2026-01-${String(day).padStart(2, "0")}T00:00:00Z`,
      annotations: { updated: `2026-02-${String(updated).padStart(2, "0")}T00:00:00.000Z` },
      resourceVersion: version,
    },
    spec: { type: "http", name: id, plan: "free", paymentMode: "hourly" },
  };
}
const add = (object: Project) => index.apply({ type: "add", key: object.metadata.name, object });
const update = (old: Project, object: Project) =>
  index.apply({ type: "update", key: object.metadata.name, object, old });
const remove = (object: Project) => index.apply({ type: "delete", key: object.metadata.name, object });
const sorted = (field: SortField, organization = "acme") =>
  index.sorted(organization, field).projects.map(({ id }) => id);

describe("a read", () => {
  it("never reaches a project of another organization, of the same id or not", () => {
    const own = project("shared");
    const others = project("shared", { organization: "other" });
    add(own);
    add(others);
    add(project("secret", { organization: "other" }));
    expect(index.find("acme", "shared")?.resource).toBe(own);
    expect(index.find("other", "shared")?.resource).toBe(others);
    expect([index.find("acme", "secret"), index.find("nobody", "shared")]).toEqual([undefined, undefined]);
    expect([sorted("updated_at"), sorted("updated_at", "nobody")]).toEqual([["shared"], []]);
    remove(others);
    expect(index.find("acme", "shared")?.resource).toBe(own);
    expect(index.find("other", "shared")).toBeUndefined();
  });

  it("never gets an earlier state, and computes each state's view once", () => {
    const first = project("p1");
    add(first);
    const json = index.find("acme", "p1")?.json();
    expect(index.find("acme", "p1")?.json()).toBe(json);
    expect(made).toBe(1);
    const second = project("p1", { version: "2" });
    second.spec.name = "renamed";
    update(first, second);
    expect(index.find("acme", "p1")?.resource).toBe(second);
    expect(index.find("acme", "p1")?.json()).toContain('"name":"renamed"');
    expect(made).toBe(2);
    remove(second);
    expect(index.find("acme", "p1")).toBeUndefined();
  });

  it("gets nothing that is outside of the organizations' namespaces", () => {
    add(project("p1", { organization: "" }));
    expect([index.find("", "p1"), index.find("default", "p1"), sorted("created_at", "default")]).toEqual([
      undefined,
      undefined,
      [],
    ]);
  });
});

describe("the orders of the list", () => {
  it("go by the moment, then by the id", () => {
    for (const id of ["pc", "pa", "pb"]) {
      add(project(id, { day: 2 }));
    }
    add(project("early", { day: 1, updated: 9 }));
    expect(sorted("created_at")).toEqual(["early", "pa", "pb", "pc"]);
    expect(sorted("updated_at")).toEqual(["pa", "pb", "pc", "early"]);
  });

  it("are those of a fresh index after any changes", () => {
    const present = new Map<string, Project>();
    let seed = 7;
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed % below;
    };
    for (let step = 0; step < 600; step += 1) {
      const id = `p${random(40)}`;
      const old = present.get(id);
      if (old && random(3) === 0) {
        present.delete(id);
        remove(old);
      } else {
        const next = project(id, { day: 1 + random(5), updated: 1 + random(20), version: String(step) });
        present.set(id, next);
        if (old) {
          update(old, next);
        } else {
          add(next);
        }
      }
      // From the first time on that it is requested, the order is kept.
      const field = (["updated_at", "created_at"] as const)[random(2)] ?? "updated_at";
      const moment = (one: Project) =>
        field === "updated_at" ? updatedAt(one) : (one.metadata.creationTimestamp ?? "");
      const keyOf = (one: Project) => `${moment(one)} ${one.metadata.name}`;
      const expected = [...present.values()].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
      expect(index.sorted("acme", field).projects.map(({ resource }) => resource)).toEqual(expected);
    }
  });
});
