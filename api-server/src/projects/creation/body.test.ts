import { readFileSync } from "node:fs";
import { parseCatalog, parseCreateProject } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../../test/kit/api-server/harness.ts";
import { withTemplate } from "./body.ts";

const catalog = parseCatalog(
  readFileSync(new URL("../../../../charts/slipway/files/catalog.yaml", import.meta.url), "utf8"),
);
const named = (id: string, more: object = {}) => ({
  template_id: id,
  template_revision: 1,
  name: "from-template",
  ...more,
});

describe("withTemplate", () => {
  // Shows: docs/applications.md#create: `template_id`, `template_revision`: fields of the body override
  it.each(catalog.templates)("completes $id to a body that is accepted", ({ id }) => {
    expect(parseCreateProject(withTemplate(named(id), catalog))).toMatchObject({ ok: true });
  });

  // Shows: docs/applications.md#create: `template_id`, `template_revision`: fields of the body override
  it("lets the request win, at the top and key by key in config", () => {
    const request = named("hello", { plan: "basic", config: { port: 8080, instances: 2 } });
    const template = catalog.templates.find(({ id }) => id === "hello");
    expect(withTemplate(request, catalog)).toEqual({
      ...template?.body,
      name: "from-template",
      plan: "basic",
      config: { ...(template?.body.config as object), port: 8080, instances: 2 },
    });
  });

  it("does not change the catalog", () => {
    const before = structuredClone(catalog.templates);
    const completed = withTemplate(named("hello"), catalog) as { config: { image: { url: string } } };
    completed.config.image.url = "changed";
    expect(catalog.templates).toEqual(before);
  });

  it.each([
    [named("nobodys")],
    [named("hello", { template_revision: 2 })],
    [named("hello", { template_revision: "1" })],
    [{ name: "a", template_id: "hello" }],
    [{ name: "a" }],
    ["text"],
    [null],
    [[1]],
  ])("leaves %j as it is", (body) => {
    expect(withTemplate(body, catalog)).toBe(body);
  });
});

describe("POST /v1/project from a template", () => {
  let harness: FakeHarness;
  beforeAll(async () => {
    harness = await startFakeHarness();
  });
  afterAll(() => harness.close());

  const send = async (payload: object, ...grants: string[]) => {
    const headers = harness.key("acme", ...(grants.length > 0 ? grants : ["* on organization:*"]));
    const response = await harness.app.inject({ method: "POST", url: "/v1/project", headers, payload });
    return { status: response.statusCode, ...response.json() };
  };

  it("needs the permission of the type that comes out", async () => {
    const onlyDatabases = "database.create on organization:*";
    expect(await send(named("hello"), onlyDatabases)).toMatchObject({
      status: "failed",
      code: "PERMISSION_DENIED",
      required: ["project.create on organization:*"],
    });
    const turned = named("hello", { config: { type_project: "postgresql" } });
    expect(await send(turned, onlyDatabases)).toMatchObject({ code: "VALIDATION_FAILED" });
    expect(await send(turned, "project.create on organization:*")).toMatchObject({
      code: "PERMISSION_DENIED",
    });
  });

  // Shows: docs/applications.md#errors-project-creation: 400 | `TEMPLATE_NOT_FOUND`
  it.each([
    [{ template_id: "nobodys" }, "TEMPLATE_NOT_FOUND"],
    [{ template_revision: 99 }, "TEMPLATE_NOT_FOUND"],
    [{ template_revision: "1" }, "VALIDATION_FAILED"],
    [{ template_revision: 1.5 }, "VALIDATION_FAILED"],
    [{ template_id: null }, "VALIDATION_FAILED"],
    [{ template_revision: undefined }, "VALIDATION_FAILED"],
    [{ template_id: undefined }, "VALIDATION_FAILED"],
    [{ config: "all" }, "VALIDATION_FAILED"],
    [{ config: { port: "80" } }, "VALIDATION_FAILED"],
    [{ config: { surprise: true } }, "VALIDATION_FAILED"],
    [{ name: undefined }, "VALIDATION_FAILED"],
    [{ plan: "golden" }, "PLAN_UNKNOWN"],
  ])("with %j answers 400 %s", async (change, code) => {
    const response = await harness.app.inject({
      method: "POST",
      url: "/v1/project",
      headers: harness.key("acme", "* on organization:*"),
      payload: named("hello", change),
    });
    expect([response.statusCode, response.json().code]).toEqual([400, code]);
  });

  it("passes every rule when nothing is wrong", async () => {
    // The test's ledger is away.
    expect(await send(named("hello"))).toMatchObject({ code: "LEDGER_UNAVAILABLE" });
  });
});

describe("GET /v1/project/templates", () => {
  // Shows: docs/applications.md#endpoints: `GET /v1/project/templates` | the templates of creations, to
  it("shows the templates to any credential, and to no other caller", async () => {
    const harness = await startFakeHarness();
    const url = "/v1/project/templates";
    expect((await harness.app.inject(url)).statusCode).toBe(401);
    const response = await harness.app.inject({ url, headers: harness.key("acme") });
    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({ status: "success", data: catalog.templates });
    await harness.close();
  });
});
