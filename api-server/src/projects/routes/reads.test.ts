import { organizationNamespace, type Project } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../../test/kit/api-server/harness.ts";
import { projectResource } from "../../resources.ts";
import { ApiProject } from "../api-project.ts";
import { OrganizationIndex } from "../organization-index.ts";
import { type ListQuery, listProjects, type ProjectPage } from "./reads.ts";

/** `GET /v1/project` over HTTP: what its parameters mean, and where they end. */

const ORGANIZATION = "acme";
let harness: FakeHarness;
let headers: Record<string, string>;

beforeAll(async () => {
  harness = await startFakeHarness();
  headers = harness.key(ORGANIZATION, "project.read on project:*");
  for (let index = 1; index <= 14; index += 1) {
    await harness.project(ORGANIZATION, `shop-${String(index).padStart(2, "0")}`);
  }
  const valkey = { type: "valkey", image: undefined, exposure: undefined, port: undefined } as const;
  await harness.project(ORGANIZATION, "cache", { ...valkey, profile: "cache", name: "page-cache" });
  await harness.project(ORGANIZATION, "queue", { ...valkey, profile: "queue", name: "mail-queue" });
  await harness.project(ORGANIZATION, "other", { name: "other-name", description: "Sells Ütensils 🫖" });
  const project = await harness.kube.get<Project>(projectResource, {
    namespace: organizationNamespace(ORGANIZATION),
    name: "other",
  });
  await harness.kube.updateStatus(projectResource, { ...project, status: { phase: "stopped" } });
});
afterAll(() => harness.close());

const list = (query: Record<string, string> = {}) =>
  harness.app.inject({ url: "/v1/project", query, headers });
const ids = async (query: Record<string, string>): Promise<string[]> => {
  const response = await list(query);
  expect(response.json()).toMatchObject({ status: "success" });
  return response.json().data.projects.map(({ id }: { id: string }) => id);
};
const fieldsOf = async (query: Record<string, string>): Promise<string[]> => {
  const response = await list(query);
  expect([response.statusCode, response.json().code]).toEqual([400, "VALIDATION_FAILED"]);
  return response.json().errors.map(({ field }: { field: string }) => field);
};

describe("pages", () => {
  // Shows: docs/applications.md#endpoints: `GET /v1/project` | `data.projects`, `data.pagination`
  // Shows: docs/applications.md#fields-of-answers: pagination | `page`, `limit`, `total`, `pages`
  // Shows: docs/applications.md#list: `limit` 1 to 50, default 15
  it("are of 15 projects, the first one by default", async () => {
    const { data } = (await list()).json();
    expect(data.projects).toHaveLength(15);
    expect(data.pagination).toEqual({ page: 1, limit: 15, total: 17, pages: 2 });
    expect(await ids({ page: "2" })).toHaveLength(2);
  });

  // Shows: docs/applications.md#list: `page` from 1, default 1; a page after the last is empty
  // Shows: docs/applications.md#limits: list page size | 1 to 50, default 15
  it("have 1 to 50, and a page after the last is no error", async () => {
    expect(await ids({ limit: "50" })).toHaveLength(17);
    const single = (await list({ limit: "1", page: "17" })).json().data;
    expect(single.projects).toHaveLength(1);
    expect(single.pagination).toEqual({ page: 17, limit: 1, total: 17, pages: 17 });
    expect(await ids({ page: "3" })).toEqual([]);
    expect(await ids({ page: "2147483647", limit: "50" })).toEqual([]);
  });

  // Shows: docs/applications.md#list: `page` from 1, default 1; a page after the last is empty
  it.each(["0", "-1", "1.5", "one", "1e1", "", " 1", "99999999999"])(
    "refuse %j as page and as limit",
    async (text) => {
      expect(await fieldsOf({ page: text })).toEqual(expect.arrayContaining(["page"]));
      expect(await fieldsOf({ limit: text })).toEqual(expect.arrayContaining(["limit"]));
    },
  );

  // Shows: docs/applications.md#list: `limit` 1 to 50, default 15
  // Shows: docs/applications.md#limits: list page size | 1 to 50, default 15
  it("refuse a limit of 51", async () => {
    expect(await fieldsOf({ limit: "51" })).toEqual(["limit"]);
  });
});

describe("filters", () => {
  // Shows: docs/applications.md#list: `type`, `status`
  // Shows: docs/applications.md#list: `profile` with `type=valkey` alone, else 400
  it("go by type, by profile of Valkey services, and by status", async () => {
    expect((await ids({ type: "valkey" })).sort()).toEqual(["cache", "queue"]);
    expect(await ids({ type: "valkey", profile: "queue" })).toEqual(["queue"]);
    expect(await ids({ type: "valkey", profile: "key_value" })).toEqual([]);
    await expect.poll(() => ids({ status: "stopped" })).toEqual(["other"]);
    expect(await ids({ status: "creating", limit: "50" })).toHaveLength(16);
    expect(await ids({ status: "creating", type: "job" })).toEqual([]);
  });

  // Shows: docs/applications.md#list: `search` of 1 to 256 characters, in name or description, in any
  it.each([["Page-C"], ["-cache"]])("search %j finds by name", async (search) => {
    expect(await ids({ search })).toEqual(["cache"]);
  });

  // Shows: docs/applications.md#list: `search` of 1 to 256 characters, in name or description, in any
  it.each([["ütensils"], ["SELLS"], ["🫖"]])("search %j finds by description", async (search) => {
    expect(await ids({ search })).toEqual(["other"]);
  });

  // Shows: docs/applications.md#list: `search` of 1 to 256 characters, in name or description, in any
  // Shows: docs/applications.md#limits: search | 1 to 256 characters
  it("search accepts 1 to 256 characters, however many bytes they have", async () => {
    expect(await ids({ search: "x".repeat(256) })).toEqual([]);
    expect(await ids({ search: "🫖".repeat(256) })).toEqual([]);
    expect(await fieldsOf({ search: "x".repeat(257) })).toEqual(["search"]);
    expect(await fieldsOf({ search: "" })).toEqual(["search"]);
  });

  // Shows: docs/applications.md#conventions: every broken rule is reported in one answer, each naming
  // Shows: docs/databases-api.md#endpoints: `GET /v1/project` | `type`, `profile` and
  it("are all validated together, profile without type=valkey among them", async () => {
    const broken = { type: "mysql", profile: "cache", status: "done", limit: "51", sort_by: "name" };
    expect((await fieldsOf(broken)).sort()).toEqual(["limit", "profile", "sort_by", "status", "type"]);
  });
});

describe("order", () => {
  // Shows: docs/applications.md#list: `sort_by` `updated_at` or `created_at`, `sort_order` `desc` or
  it("is by the last update, newest first, unless requested otherwise", async () => {
    const all = await ids({ limit: "50" });
    expect(all.indexOf("other")).toBeLessThan(all.indexOf("shop-01"));
    expect(await ids({ limit: "50", sort_by: "updated_at", sort_order: "desc" })).toEqual(all);
    expect(await ids({ limit: "50", sort_order: "asc" })).toEqual(all.toReversed());
    const created = await ids({ limit: "50", sort_by: "created_at", sort_order: "asc" });
    expect(created.toSorted()).toEqual(all.toSorted());
    expect(created.indexOf("shop-01")).toBeLessThan(created.indexOf("shop-14"));
  });
});

function project(id: string, day: number, spec: Partial<Project["spec"]> = {}): ApiProject {
  const created = `2026-01-${String(day).padStart(2, "0")}T00:00:00Z`;
  const resource: Project = {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: { name: id, namespace: organizationNamespace(ORGANIZATION), creationTimestamp: created },
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
/** As the route does it, over these projects. */
function listed(
  query: Partial<ListQuery>,
  of = projects,
  isReadable?: (one: ApiProject) => boolean,
): ProjectPage {
  const whole = { ...defaults, ...query };
  const index = new OrganizationIndex(
    ({ metadata }) => of.find(({ id }) => id === metadata.name) as ApiProject,
  );
  for (const { id, resource } of of) {
    index.apply({ type: "add", key: id, object: resource });
  }
  return listProjects(index.sorted(ORGANIZATION, whole.sort_by), whole, isReadable);
}
const listedIds = (query: Partial<ListQuery>) => listed(query).projects.map((item) => item.id);

describe("listProjects", () => {
  // Shows: docs/applications.md#list: `sort_by` `updated_at` or `created_at`, `sort_order` `desc` or
  it("shows the last updated first by default", () => {
    expect(listedIds({})).toEqual(["p1", "p2", "p3", "p4"]);
    expect(listedIds({ sort_order: "asc" })).toEqual(["p4", "p3", "p2", "p1"]);
    expect(listedIds({ sort_by: "created_at" })).toEqual(["p4", "p3", "p2", "p1"]);
  });

  it.each([
    [{ type: "valkey" }, ["p2", "p4"]],
    [{ type: "valkey", profile: "queue" }, ["p4"]],
    [{ status: "running" }, ["p3"]],
    [{ search: "shop" }, ["p1"]],
    [{ search: "NAME-P4" }, ["p4"]],
    [{ search: "nothing" }, []],
  ] as const)("filters by %j", (query, expected) => {
    expect(listedIds(query)).toEqual(expected);
  });

  // Shows: docs/applications.md#fields-of-answers: pagination | `page`, `limit`, `total`, `pages`
  it("cuts pages that neither overlap nor leave out, and counts them", () => {
    const first = listed({ limit: 3 });
    const second = listed({ limit: 3, page: 2 });
    const third = listed({ limit: 3, page: 3 });
    expect(first.pagination).toEqual({ page: 1, limit: 3, total: 4, pages: 2 });
    expect([...first.projects, ...second.projects].map((item) => item.id)).toEqual(["p1", "p2", "p3", "p4"]);
    expect(third.projects).toEqual([]);
  });

  it("counts and shows only what the caller may read, with every filter", () => {
    const isReadable = ({ id }: ApiProject) => id !== "p2";
    const all = listed({ limit: 2 }, projects, isReadable);
    expect([all.projects.map((item) => item.id), all.pagination.total]).toEqual([["p1", "p3"], 3]);
    expect(listed({ type: "valkey" }, projects, isReadable).projects.map((item) => item.id)).toEqual(["p4"]);
    expect(listed({ page: 2, limit: 2 }, projects, isReadable).projects.map((item) => item.id)).toEqual([
      "p4",
    ]);
  });

  it("orders projects of the same moment by id", () => {
    const same = ["pc", "pa", "pb"].map((id) => project(id, 1));
    const found = listed({ sort_order: "asc" }, same);
    expect(found.projects.map((item) => item.id)).toEqual(["pa", "pb", "pc"]);
  });

  // Shows: docs/applications.md#fields-of-answers: list item | `id`, `name`, `type_project`, `plan`
  it("shows the profile of Valkey services only", () => {
    const items = listed({}).projects;
    expect(items.find((item) => item.id === "p2")?.managed_service).toEqual({ profile: "cache" });
    expect(items.find((item) => item.id === "p1")).not.toHaveProperty("managed_service");
  });
});
