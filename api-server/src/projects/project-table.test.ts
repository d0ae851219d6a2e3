import type { Project } from "@slipway/crds";
import { expect, it } from "vitest";
import { ApiProject } from "./api-project.ts";
import { ProjectTable } from "./project-table.ts";

function project(id: string, spec: Partial<Project["spec"]> = {}, phase?: "running"): ApiProject {
  const resource: Project = {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: { name: id, namespace: "slipway-org-acme" },
    spec: { type: "http", name: id, plan: "free", paymentMode: "hourly", ...spec },
    ...(phase === undefined ? {} : { status: { phase } }),
  };
  return new ApiProject(resource, { updatedAt: "", zone: "apps.localhost" });
}

function tableOf(...projects: ApiProject[]): ProjectTable {
  const table = new ProjectTable();
  projects.forEach((one, row) => {
    table.insert(row, one);
  });
  return table;
}

it("finds a text in names and descriptions, in any case, each project once", () => {
  const table = tableOf(
    project("abab", { description: "ABAB" }),
    project("other"),
    project("last", { name: "Straße", description: "xÜab" }),
  );
  expect(table.rows({ search: "AB" })).toEqual([0, 2]);
  expect(table.rows({ search: "üA" })).toEqual([2]);
  expect(table.rows({ search: "straß" })).toEqual([2]);
  expect(table.rows({ search: "nothing" })).toEqual([]);
});

it("finds no text that begins in one field or project and ends in the next", () => {
  const table = tableOf(project("one", { description: "two" }), project("three"));
  expect([table.rows({ search: "onetwo" }), table.rows({ search: "twothree" })]).toEqual([[], []]);
});

it("filters by every column together, and leaves all rows without a filter", () => {
  const table = tableOf(
    project("p0", { type: "valkey", profile: "cache" }, "running"),
    project("p1", { type: "valkey", profile: "cache" }),
    project("p2", {}, "running"),
  );
  expect(table.rows({})).toBeUndefined();
  expect(table.rows({ type: "valkey" })).toEqual([0, 1]);
  expect(table.rows({ type: "valkey", profile: "queue" })).toEqual([]);
  expect(table.rows({ status: "running" })).toEqual([0, 2]);
  expect(table.rows({ type: "valkey", profile: "cache", status: "creating", search: "P" })).toEqual([1]);
});

it("forgets a text with its project, and finds one that came since", () => {
  const table = tableOf(project("first"), project("second"));
  expect(table.rows({ search: "second" })).toEqual([1]);
  table.remove(0);
  expect([table.rows({ search: "first" }), table.rows({ search: "second" })]).toEqual([[], [0]]);
  table.insert(1, project("third"));
  expect([table.rows({ search: "third" }), table.rows({ type: "http" })]).toEqual([[1], [0, 1]]);
  expect(table.projects.map(({ id }) => id)).toEqual(["second", "third"]);
});

it("is empty at first", () => {
  expect([new ProjectTable().rows({ search: "a" }), new ProjectTable().rows({})]).toEqual([[], undefined]);
});
