import type { Project } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { ApiProject } from "./api-project.ts";
import { type ListQuery, listProjects } from "./list.ts";

function project(id: string, day: number, spec: Partial<Project["spec"]> = {}): ApiProject {
  const created = `2026-01-${String(day).padStart(2, "0")}T00:00:00Z`;
  const resource: Project = {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: { name: id, namespace: "slipway-org-acme", creationTimestamp: created },
    spec: { type: "http", name: `name-${id}`, plan: "free", paymentMode: "hourly", ...spec },
    status: { phase: id === "p3" ? "running" : "creating" },
  };
  // Updated in the opposite order of creation.
  const updatedAt = `2026-02-${String(20 - day).padStart(2, "0")}T00:00:00Z`;
  return new ApiProject(resource, { updatedAt, zone: "apps.localhost" });
}

const projects = [
  project("p1", 1, { description: "The Shop" }),
  project("p2", 2, { type: "valkey", profile: "cache", plan: "cache-free" }),
  project("p3", 3),
  project("p4", 4, { type: "valkey", profile: "queue", plan: "queue-free" }),
];
const defaults: ListQuery = { page: 1, limit: 15, sort_by: "updated_at", sort_order: "desc" };
const ids = (query: Partial<ListQuery>) =>
  listProjects(projects, { ...defaults, ...query }).projects.map((item) => item.id);

describe("listProjects", () => {
  // Shows: docs/applications.md#list: `sort_by` `updated_at` or `created_at`, `sort_order` `desc` or
  it("shows the last updated first by default", () => {
    expect(ids({})).toEqual(["p1", "p2", "p3", "p4"]);
    expect(ids({ sort_order: "asc" })).toEqual(["p4", "p3", "p2", "p1"]);
    expect(ids({ sort_by: "created_at" })).toEqual(["p4", "p3", "p2", "p1"]);
  });

  it.each([
    [{ type: "valkey" }, ["p2", "p4"]],
    [{ type: "valkey", profile: "queue" }, ["p4"]],
    [{ status: "running" }, ["p3"]],
    [{ search: "shop" }, ["p1"]],
    [{ search: "NAME-P4" }, ["p4"]],
    [{ search: "nothing" }, []],
  ] as const)("filters by %j", (query, expected) => {
    expect(ids(query)).toEqual(expected);
  });

  // Shows: docs/applications.md#fields-of-answers: pagination | `page`, `limit`, `total`, `pages`
  it("cuts pages that neither overlap nor leave out, and counts them", () => {
    const first = listProjects(projects, { ...defaults, limit: 3 });
    const second = listProjects(projects, { ...defaults, limit: 3, page: 2 });
    const third = listProjects(projects, { ...defaults, limit: 3, page: 3 });
    expect(first.pagination).toEqual({ page: 1, limit: 3, total: 4, pages: 2 });
    expect([...first.projects, ...second.projects].map((item) => item.id)).toEqual(["p1", "p2", "p3", "p4"]);
    expect(third.projects).toEqual([]);
  });

  it("orders projects of the same moment by id", () => {
    const same = ["pc", "pa", "pb"].map((id) => project(id, 1));
    const found = listProjects(same, { ...defaults, sort_order: "asc" });
    expect(found.projects.map((item) => item.id)).toEqual(["pa", "pb", "pc"]);
  });

  // Shows: docs/applications.md#fields-of-answers: list item | `id`, `name`, `type_project`, `plan`
  it("shows the profile of Valkey services only", () => {
    const items = listProjects(projects, defaults).projects;
    expect(items.find((item) => item.id === "p2")?.managed_service).toEqual({ profile: "cache" });
    expect(items.find((item) => item.id === "p1")).not.toHaveProperty("managed_service");
  });
});
