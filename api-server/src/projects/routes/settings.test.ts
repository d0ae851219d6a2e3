import { defaultDomain, organizationNamespace, type Project } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type FakeHarness, startFakeHarness, ZONE } from "../../../../test/kit/api-server/harness.ts";
import { startReleaser } from "../../../../test/kit/api-server/releaser.ts";
import { projectResource } from "../../resources.ts";
import { claimHostnames, readClaim } from "../claims.ts";

/** Name, description, domain, custom domains and exposure, over a fake apiserver; claims are released as by an operator. */

const ORGANIZATION = "acme";
const ROUTES = ["name", "description", "domain", "custom-domains", "exposure"] as const;
const postgres: Partial<Project["spec"]> = {
  type: "postgresql",
  plan: "db-basic",
  version: "17",
  image: undefined,
  exposure: undefined,
  port: undefined,
};

let harness: FakeHarness;
let releaser: { stop: () => Promise<void> };
let headers: Record<string, string>;
let count = 0;

beforeAll(async () => {
  harness = await startFakeHarness();
  releaser = startReleaser(harness.kube);
  headers = harness.key(ORGANIZATION, "* on project:*");
});
afterAll(async () => {
  await releaser.stop();
  await harness.close();
});

/** A project of its own for a test; on a plan that has everything. Returns its id. */
async function make(change: Partial<Project["spec"]> = {}): Promise<string> {
  count += 1;
  const id = `shop-${count}`;
  const project = await harness.project(ORGANIZATION, id, { plan: "basic", ...change });
  if (project.spec.exposure === "public") {
    await claimHostnames(harness.kube, project, [
      { hostname: defaultDomain(project, ZONE), kind: "default" },
    ]);
  }
  return id;
}
const patch = (id: string, route: string, payload: object, as = headers) =>
  harness.app.inject({ method: "PATCH", url: `/v1/project/${id}/${route}`, headers: as, payload });
const read = async (id: string) =>
  (await harness.app.inject({ url: `/v1/project/${id}`, headers })).json().data;
const live = (id: string) =>
  harness.kube.get<Project>(projectResource, { namespace: organizationNamespace(ORGANIZATION), name: id });
const setStatus = async (id: string, status: Project["status"]) => {
  await harness.kube.updateStatus(projectResource, { ...(await live(id)), status });
};
const holder = async (hostname: string) => (await readClaim(harness.kube, hostname))?.spec.projectRef.name;
const fieldsOf = (response: { json: () => { errors?: { field: string }[] } }) =>
  (response.json().errors ?? []).map((error) => error.field);

const bodies: Record<(typeof ROUTES)[number], object> = {
  name: { name: "renamed-shop" },
  description: { description: "Sells" },
  domain: { domain: "my-shop" },
  "custom-domains": { custom_domains: [] },
  exposure: { exposure: "public" },
};

describe.each(ROUTES)("PATCH %s", (route) => {
  // Shows: docs/applications.md#errors-other-operations: PATCH domain | 404
  // Shows: docs/applications.md#errors-other-operations: PATCH custom-domains | 404
  // Shows: docs/applications.md#errors-other-operations: PATCH exposure | 404
  it("answers 404 for a project that is not there, and for another organization's", async () => {
    expect((await patch("pmissing", route, bodies[route])).json()).toMatchObject({
      status: "failed",
      code: "PROJECT_NOT_FOUND",
    });
    const stranger = harness.key("other", "* on project:*");
    const answer = await patch(await make(), route, bodies[route], stranger);
    expect(answer.statusCode).toBe(404);
  });

  // Shows: docs/applications.md#errors-other-operations: PATCH name, description, domain
  it("answers 409 while the project is being deleted, and 404 once it is deleted", async () => {
    const id = await make();
    const { namespace = "", name } = (await live(id)).metadata;
    const ref = { namespace, name };
    await harness.kube.patch(projectResource, ref, { metadata: { finalizers: ["slipway.dev/project"] } });
    await harness.kube.delete(projectResource, ref);
    const late = await patch(id, route, bodies[route]);
    expect([late.statusCode, late.json().code]).toEqual([409, "PROJECT_ALREADY_DELETED"]);
    await harness.kube.patch(projectResource, ref, { metadata: { finalizers: [] } });
    await expect
      .poll(async () => (await patch(id, route, bodies[route])).json().code)
      .toBe("PROJECT_NOT_FOUND");
    expect((await patch(id, route, bodies[route])).statusCode).toBe(404);
  });

  it("answers 401 without a credential, and 403 without its permission", async () => {
    const id = await make();
    expect((await patch(id, route, bodies[route], {})).statusCode).toBe(401);
    const permission = `project.${["name", "description"].includes(route) ? route : "domain"}.update`;
    const without = harness.key(ORGANIZATION, `project.read on project:${id}`);
    expect((await patch(id, route, bodies[route], without)).json()).toMatchObject({
      code: "PERMISSION_DENIED",
      required: [`${permission} on project:${id}`],
    });
    const enough = harness.key(ORGANIZATION, `${permission} on project:${id}`);
    expect((await patch(id, route, bodies[route], enough)).statusCode).toBe(200);
  });

  // Shows: docs/applications.md#errors-other-operations: PATCH domain | 400 missing or invalid
  // Shows: docs/applications.md#errors-other-operations: PATCH custom-domains | 400 invalid body
  it.each([
    [{}],
    [{ surprise: 1 }],
    [[]],
    [{ name: 1, description: 1, domain: 1, custom_domains: 1, exposure: 1 }],
  ])("answers 400 to %j", async (body) => {
    const answer = await patch(await make(), route, body);
    expect(answer.json()).toMatchObject({ status: "failed", code: "VALIDATION_FAILED" });
    expect(answer.statusCode).toBe(400);
  });

  // Shows: docs/applications.md#conventions: every write is in the audit log, with its outcome and
  it("leaves an audit line with the project", async () => {
    const id = await make();
    await patch(id, route, route === "domain" ? { domain: "audited-shop" } : bodies[route]);
    expect(harness.audited.find((entry) => entry.projectId === id)).toMatchObject({ status: 200 });
  });
});

describe("PATCH name and description", () => {
  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/name` | `message`
  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/description` | `message`
  it("change what the read shows, and move updated_at", async () => {
    const id = await make();
    const before = await read(id);
    expect((await patch(id, "name", { name: "renamed-shop" })).json()).toEqual({
      status: "success",
      message: expect.any(String),
    });
    await patch(id, "description", { description: "Sells ütensils 🫖" });
    const after = await read(id);
    expect(after).toMatchObject({ name: "renamed-shop", description: "Sells ütensils 🫖" });
    expect(after.updated_at > before.updated_at).toBe(true);
  });

  it("keep the domain that was derived from the first name", async () => {
    const id = await make();
    const { domain } = await read(id);
    await setStatus(id, { domain });
    expect((await patch(id, "name", { name: "renamed-shop" })).statusCode).toBe(200);
    expect(await read(id)).toMatchObject({ name: "renamed-shop", domain });
  });

  // Shows: docs/applications.md#project-settings: name: 6 to 32; the domain stays when it changes
  it.each([
    ["short"],
    ["x".repeat(33)],
    ["Upper-case"],
    ["-begins"],
    ["ends-"],
    ["under_score"],
    ["naïve-shop"],
  ])("refuse the name %s", async (name) => {
    const answer = await patch(await make(), "name", { name });
    expect(answer.statusCode).toBe(400);
    expect(new Set(fieldsOf(answer))).toEqual(new Set(["name"]));
  });

  // Shows: docs/applications.md#project-settings: description: 1 to 256 characters
  it("refuse a description of none and of 257 characters, and take 256", async () => {
    const id = await make();
    expect((await patch(id, "description", { description: "" })).statusCode).toBe(400);
    expect((await patch(id, "description", { description: "é".repeat(257) })).statusCode).toBe(400);
    expect((await patch(id, "description", { description: "é".repeat(256) })).statusCode).toBe(200);
  });
});

describe("PATCH domain", () => {
  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/domain` | `message`
  it("reserves the subdomain as sent, shows it immediately, and releases the one before", async () => {
    const id = await make();
    const { domain: before } = await read(id);
    const answer = await patch(id, "domain", { domain: "first-choice" });
    expect(answer.json()).toEqual({ status: "success", message: expect.any(String) });
    expect(await read(id)).toMatchObject({ domain: `first-choice.${ZONE}` });
    expect(await holder(`first-choice.${ZONE}`)).toBe(id);
    expect(await holder(before)).toBeUndefined();
    await patch(id, "domain", { domain: "second-choice" });
    expect(await holder(`first-choice.${ZONE}`)).toBeUndefined();
  });

  // Shows: docs/applications.md#project-settings: domain: 3 to 54 characters; the current one is 200
  it("answers 200 to the subdomain that the project has", async () => {
    const id = await make();
    await patch(id, "domain", { domain: "the-same" });
    const { resourceVersion } = (await live(id)).metadata;
    expect((await patch(id, "domain", { domain: "the-same" })).statusCode).toBe(200);
    expect((await live(id)).metadata.resourceVersion).toBe(resourceVersion);
  });

  // Shows: docs/applications.md#project-settings: domain: 3 to 54 characters; the current one is 200
  // Shows: docs/applications.md#errors-other-operations: PATCH domain | 400 missing or invalid
  it.each([["ab"], ["x".repeat(55)], ["-shop"], ["shop-"], ["Shop"], ["a.b"], ["a b"], [""]])(
    "refuses %j with 400",
    async (domain) => {
      const answer = await patch(await make(), "domain", { domain });
      expect(answer.statusCode).toBe(400);
      expect(new Set(fieldsOf(answer))).toEqual(new Set(["domain"]));
    },
  );

  // Shows: docs/applications.md#project-settings: 1. domain, custom domains and exposure are for HTTP
  // Shows: docs/applications.md#errors-other-operations: PATCH domain | 403 the plan has no custom
  it("is refused where it cannot be", async () => {
    const owner = await make();
    await patch(owner, "domain", { domain: "already-taken" });
    const cases: [Partial<Project["spec"]>, string, number, string][] = [
      [postgres, "some-shop", 400, "PROJECT_TYPE_MISMATCH"],
      // Shows: docs/applications.md#errors-other-operations: PATCH domain | 403 the plan has no custom
      [{ plan: "free" }, "some-shop", 403, "CUSTOM_SUBDOMAIN_NOT_AVAILABLE_FOR_PLAN"],
      // Shows: docs/applications.md#errors-other-operations: PATCH domain | 409 `PROJECT_PRIVATE`
      [{ exposure: "private" }, "some-shop", 409, "PROJECT_PRIVATE"],
      // Shows: docs/applications.md#errors-other-operations: PATCH domain | 409 `DOMAIN_UNAVAILABLE`, a
      [{}, "already-taken", 409, "DOMAIN_UNAVAILABLE"],
      // Shows: docs/applications.md#errors-other-operations: PATCH domain | 409 `DOMAIN_UNAVAILABLE`, a
      [{}, "api", 409, "DOMAIN_UNAVAILABLE"],
    ];
    for (const [spec, domain, status, code] of cases) {
      const id = await make(spec);
      const answer = await patch(id, "domain", { domain });
      expect(answer.json()).toMatchObject({ status: "failed", code });
      expect(answer.statusCode).toBe(status);
      expect((await live(id)).spec.subdomain).toBeUndefined();
    }
    expect(await holder(`already-taken.${ZONE}`)).toBe(owner);
  });

  // Shows: docs/applications.md#project-settings: 3. the subdomain exactly as requested; in use: 409
  it("gives one subdomain to exactly one of ten projects", async () => {
    const ids = await Promise.all(Array.from({ length: 10 }, () => make()));
    const answers = await Promise.all(ids.map((id) => patch(id, "domain", { domain: "contested" })));
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([200, ...Array(9).fill(409)]);
    const winner = ids[answers.findIndex(({ statusCode }) => statusCode === 200)];
    expect(await holder(`contested.${ZONE}`)).toBe(winner);
  });

  // Shows: docs/applications.md#conventions: order of refusal: 401, 429, 403, 404, 400, what the plan
  it("is refused in the order of refusal: the body, the plan, the state", async () => {
    const id = await make({ plan: "free", exposure: "private" });
    const answer = async (domain: string, as = headers) => {
      const { statusCode, ...response } = await patch(id, "domain", { domain }, as);
      return [statusCode, response.json().code];
    };
    const nothing = harness.key(ORGANIZATION);
    expect(await answer("-", {})).toEqual([401, "CREDENTIAL_MISSING"]);
    expect(await answer("-", nothing)).toEqual([403, "PERMISSION_DENIED"]);
    expect(await answer("-")).toEqual([400, "VALIDATION_FAILED"]);
    expect(await answer("api")).toEqual([403, "CUSTOM_SUBDOMAIN_NOT_AVAILABLE_FOR_PLAN"]);
    const { namespace = "", name } = (await live(id)).metadata;
    await harness.kube.patch(projectResource, { namespace, name }, { spec: { plan: "basic" } });
    expect(await answer("api")).toEqual([409, "PROJECT_PRIVATE"]);
  });

  // Shows: docs/applications.md#errors-other-operations: PATCH domain | 503 `DOMAIN_RELEASE_PENDING`
  it("answers 503 when the old domain is not released in time, and continues to wait on a retry", async () => {
    const id = await make();
    const { domain: before } = await read(id);
    await releaser.stop();
    // The clock is advanced: ten seconds pass immediately.
    const real = performance.now.bind(performance);
    const clock = vi.spyOn(performance, "now");
    let ahead = 0;
    clock.mockImplementation(() => {
      ahead += 1_000;
      return real() + ahead;
    });
    try {
      const answer = await patch(id, "domain", { domain: "slow-release" });
      expect(answer.json()).toMatchObject({ status: "failed", code: "DOMAIN_RELEASE_PENDING" });
      expect([answer.statusCode, answer.headers["retry-after"]]).toEqual([503, "5"]);
    } finally {
      clock.mockRestore();
      releaser = startReleaser(harness.kube);
    }
    // The change is done all the same.
    expect(await read(id)).toMatchObject({ domain: `slow-release.${ZONE}` });
    expect((await patch(id, "domain", { domain: "slow-release" })).statusCode).toBe(200);
    expect(await holder(before)).toBeUndefined();
  });

  // Shows: docs/applications.md#errors-other-operations: PATCH domain | 503 `ADDRESS_NOT_ASSIGNED`
  it("answers 503 when the address cannot be assigned", async () => {
    const id = await make();
    const isClaim = ({ method, path }: { method: string; path: string }) =>
      method === "POST" && path.endsWith("/domainclaims");
    harness.apiserver.failNext(isClaim, { status: 500 });
    const answer = await patch(id, "domain", { domain: "not-now" });
    expect(answer.json()).toMatchObject({ status: "failed", code: "ADDRESS_NOT_ASSIGNED" });
    expect(answer.statusCode).toBe(503);
    expect((await live(id)).spec.subdomain).toBeUndefined();
    expect((await patch(id, "domain", { domain: "not-now" })).statusCode).toBe(200);
  });
});

describe("PATCH custom-domains", () => {
  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/custom-domains` | `message`
  // Shows: docs/applications.md#fields-of-answers: custom domain setup | `hostname`, `status`
  // Shows: docs/applications.md#project-settings: custom domains: the list is complete; what is absent
  it("adds one a call, shows its records, and removes what is absent", async () => {
    const id = await make();
    const { domain: target } = await read(id);
    const added = await patch(id, "custom-domains", { custom_domains: ["www.example.com"] });
    const setup = {
      hostname: "www.example.com",
      status: "pending",
      ssl_status: "pending_validation",
      dns_records: [
        {
          type: "TXT",
          name: "_slipway-challenge.www.example.com",
          value: expect.stringMatching(/^slipway-verification=[0-9a-f]{32}$/),
        },
        { type: "CNAME", name: "www.example.com", value: target },
      ],
    };
    expect(added.json()).toEqual({
      status: "success",
      message: expect.any(String),
      custom_domains: ["www.example.com"],
      custom_domain_setup: [setup],
    });
    expect(await holder("www.example.com")).toBe(id);
    expect(await read(id)).toMatchObject({
      custom_domains: ["www.example.com"],
      custom_domain_setup: [setup],
    });

    const { updated_at: before } = await read(id);
    const emptied = await patch(id, "custom-domains", { custom_domains: [] });
    expect(emptied.json()).toMatchObject({ custom_domains: [], custom_domain_setup: [] });
    expect(await holder("www.example.com")).toBeUndefined();
    expect((await read(id)).updated_at > before).toBe(true);
  });

  // Shows: docs/applications.md#fields-of-answers: custom domain setup | `hostname`, `status`
  it("shows what the operator reports of a domain", async () => {
    const id = await make({ customDomains: ["given.example.com"] });
    const dnsRecords = [{ type: "CNAME" as const, name: "given.example.com", value: "x.example.net" }];
    await setStatus(id, {
      customDomains: [{ hostname: "given.example.com", status: "active", sslStatus: "disabled", dnsRecords }],
    });
    await expect
      .poll(async () => (await read(id)).custom_domain_setup)
      .toEqual([
        { hostname: "given.example.com", status: "active", ssl_status: "disabled", dns_records: dnsRecords },
      ]);
  });

  // Shows: docs/applications.md#limits: custom domains | at most 20
  it("takes twenty, one by one, and refuses the twenty-first", async () => {
    const customDomains = Array.from({ length: 19 }, (_, index) => `d${index}.example.net`);
    const id = await make({ customDomains });
    const twenty = [...customDomains, "d19.example.net"];
    expect((await patch(id, "custom-domains", { custom_domains: twenty })).statusCode).toBe(200);
    const more = [...twenty, "d20.example.net"];
    const answer = await patch(id, "custom-domains", { custom_domains: more });
    expect(answer.statusCode).toBe(400);
    expect(fieldsOf(answer)).toEqual(["custom_domains"]);
  });

  // Shows: docs/applications.md#project-settings: 2. one new custom domain a request; reserved names are
  // Shows: docs/applications.md#errors-other-operations: PATCH custom-domains | 400 invalid body
  it.each([
    [["a.example.com", "b.example.com"], "TOO_MANY_NEW_DOMAINS", "custom_domains"],
    [[ZONE], "DOMAIN_RESERVED", "custom_domains[0]"],
    [[`shop.${ZONE}`], "DOMAIN_RESERVED", "custom_domains[0]"],
    [["platform.example.com"], "DOMAIN_RESERVED", "custom_domains[0]"],
    [["www.platform.example.com"], "DOMAIN_RESERVED", "custom_domains[0]"],
    [["Upper.example.com"], "VALIDATION_FAILED", "custom_domains[0]"],
    [["*.example.com"], "VALIDATION_FAILED", "custom_domains[0]"],
    [["localhost"], "VALIDATION_FAILED", "custom_domains[0]"],
    [["10.0.0.1"], "VALIDATION_FAILED", "custom_domains[0]"],
    [["www.example.com", "www.example.com"], "VALIDATION_FAILED", "custom_domains"],
  ])("refuses %j with %s", async (custom_domains, code, field) => {
    const answer = await patch(await make(), "custom-domains", { custom_domains });
    expect(answer.json()).toMatchObject({ status: "failed", code });
    expect(answer.statusCode).toBe(400);
    expect(fieldsOf(answer)).toContain(field);
  });

  // Shows: docs/applications.md#project-settings: 1. domain, custom domains and exposure are for HTTP
  // Shows: docs/applications.md#errors-other-operations: PATCH custom-domains | 409 project private, or
  it("is refused where it cannot be, and leaves the list as it was", async () => {
    const other = await make();
    await patch(other, "custom-domains", { custom_domains: ["theirs.example.com"] });
    const cases: [Partial<Project["spec"]>, number, string][] = [
      [postgres, 400, "PROJECT_TYPE_MISMATCH"],
      [{ exposure: "private" }, 409, "PROJECT_PRIVATE"],
      [{}, 409, "DOMAIN_UNAVAILABLE"],
    ];
    for (const [spec, status, code] of cases) {
      const id = await make(spec);
      const answer = await patch(id, "custom-domains", { custom_domains: ["theirs.example.com"] });
      expect(answer.json()).toMatchObject({ status: "failed", code });
      expect(answer.statusCode).toBe(status);
      expect((await live(id)).spec.customDomains).toBeUndefined();
    }
    expect(await holder("theirs.example.com")).toBe(other);
  });

  // Shows: docs/applications.md#project-settings: custom domains: another organization cannot take them
  it("gives a domain to exactly one of two organizations", async () => {
    const [id, rival] = [await make(), await make()];
    const answers = await Promise.all(
      [id, rival].map((one) => patch(one, "custom-domains", { custom_domains: ["both.example.com"] })),
    );
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([200, 409]);
  });
});

describe("PATCH exposure", () => {
  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/exposure` | `message`, `exposure`
  it("to private frees every domain in the same write, and back to public gives the default one", async () => {
    const id = await make();
    const { domain: first } = await read(id);
    await patch(id, "domain", { domain: "going-private" });
    await patch(id, "custom-domains", { custom_domains: ["going.example.com"] });
    const generation = (await live(id)).metadata.generation ?? 0;
    const hidden = await patch(id, "exposure", { exposure: "private" });
    expect(hidden.json()).toEqual({
      status: "success",
      message: expect.any(String),
      exposure: "private",
      domain: "",
      custom_domains: [],
    });
    expect((await live(id)).metadata.generation).toBe(generation + 1);
    expect(await holder(`going-private.${ZONE}`)).toBeUndefined();
    expect(await holder("going.example.com")).toBeUndefined();
    expect(await read(id)).not.toHaveProperty("domain");

    const shown = await patch(id, "exposure", { exposure: "public" });
    expect(shown.json()).toMatchObject({ exposure: "public", domain: first, custom_domains: [] });
    expect(await holder(first)).toBe(id);
    expect(await read(id)).toMatchObject({ exposure: "public", domain: first });
  });

  // Shows: docs/applications.md#project-settings: exposure: the current one changes nothing
  it("that it has already changes nothing", async () => {
    const id = await make();
    const { resourceVersion } = (await live(id)).metadata;
    const answer = await patch(id, "exposure", { exposure: "public" });
    expect(answer.json()).toMatchObject({
      status: "success",
      exposure: "public",
      domain: (await read(id)).domain,
    });
    expect((await live(id)).metadata.resourceVersion).toBe(resourceVersion);
  });

  // Shows: docs/applications.md#states: exposure change | a second one while one is in progress is 409
  // Shows: docs/applications.md#errors-other-operations: PATCH exposure | 409 `EXPOSURE_CHANGE_IN_PROGRESS`
  it.each([
    [{ current: "public", changing: true }],
    // The operator has not observed the earlier request yet.
    [{ current: "private" }],
  ] as const)("answers 409 while a change runs: %j", async (exposure) => {
    const id = await make();
    await setStatus(id, { exposure, observedGeneration: 0 });
    const answer = await patch(id, "exposure", { exposure: "private" });
    expect(answer.json()).toMatchObject({ status: "failed", code: "EXPOSURE_CHANGE_IN_PROGRESS" });
    expect(answer.statusCode).toBe(409);
  });

  // Shows: docs/applications.md#states: exposure change | a second one while one is in progress is 409
  it("may be changed back when it cannot become as requested", async () => {
    const id = await make();
    await setStatus(id, { exposure: { current: "private" }, observedGeneration: 1 });
    expect((await patch(id, "exposure", { exposure: "private" })).statusCode).toBe(200);
  });

  // Shows: docs/applications.md#project-settings: 4. exposure of a database: 400
  // Shows: docs/applications.md#errors-other-operations: PATCH exposure | 400 `PROJECT_TYPE_MISMATCH`: a
  it("answers 400 for a database", async () => {
    const answer = await patch(await make(postgres), "exposure", { exposure: "private" });
    expect(answer.json()).toMatchObject({ code: "PROJECT_TYPE_MISMATCH" });
    expect(answer.statusCode).toBe(400);
  });

  // Shows: docs/applications.md#errors-other-operations: PATCH exposure | 409 domain unavailable; 503
  it("answers 409 when another project has the domain, and 503 when it cannot be assigned", async () => {
    const id = await make({ exposure: "private" });
    const hostname = defaultDomain({ ...(await live(id)), status: {} }, ZONE);
    const thief = await harness.kube.get<Project>(projectResource, {
      namespace: organizationNamespace(ORGANIZATION),
      name: await make({ subdomain: hostname.split(".")[0] }),
    });
    expect(await holder(hostname)).toBe(thief.metadata.name);
    expect((await patch(id, "exposure", { exposure: "public" })).json()).toMatchObject({
      code: "DOMAIN_UNAVAILABLE",
    });
    const other = await make({ exposure: "private" });
    harness.apiserver.failNext(({ method, path }) => method === "POST" && path.endsWith("/domainclaims"), {
      status: 500,
    });
    const answer = await patch(other, "exposure", { exposure: "public" });
    expect(answer.json()).toMatchObject({ code: "ADDRESS_NOT_ASSIGNED" });
    expect(answer.statusCode).toBe(503);
    expect((await live(other)).spec.exposure).toBe("private");
  });
});
