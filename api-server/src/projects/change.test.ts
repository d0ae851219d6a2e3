import { KubeError } from "@slipway/controller-runtime";
import { type DomainClaim, defaultDomain, organizationNamespace, type Project } from "@slipway/crds";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness, ZONE } from "../../../test/kit/api-server/harness.ts";
import { failures } from "../errors/catalog.ts";
import { domainClaimResource, projectResource } from "../resources.ts";
import type { ApiProject } from "./api-project.ts";
import { changeProject, specErrors } from "./change.ts";
import { claimHostnames, deleteClaims, hostnamesOf, readClaim } from "./claims.ts";

let harness: FakeHarness;
let count = 0;
let project: ApiProject;

beforeAll(async () => {
  harness = await startFakeHarness();
});
afterAll(() => harness.close());
beforeEach(async () => {
  count += 1;
  project = await make(`shop-${count}`);
});

const make = async (id: string): Promise<ApiProject> => {
  await harness.project("acme", id);
  return (await harness.projects.find("acme", id)) as ApiProject;
};
const live = ({ id }: ApiProject) =>
  harness.kube.get<Project>(projectResource, { namespace: organizationNamespace("acme"), name: id });
const rename = (name: string) => changeProject(project, harness.services, (spec) => ({ ...spec, name }));
const isPatch = ({ method, path }: { method: string; path: string }) =>
  method === "PATCH" && path.endsWith(`/projects/${project.id}`);
const patchesOf = () => harness.apiserver.requests.filter(isPatch).length;

describe("changeProject", () => {
  it("writes only what differs, and shows it immediately", async () => {
    const before = await live(project);
    const change = await rename("renamed-shop");
    const after = await live(project);
    expect(change).toMatchObject({ changed: true, before: { spec: { name: "shop-front" } } });
    expect(change.project.resource.spec.name).toBe("renamed-shop");
    const updatedAt = expect.stringMatching(/^2\d{3}-.*\.\d{3}Z$/);
    expect(after.spec).toEqual({ ...before.spec, name: "renamed-shop", updatedAt });
  });

  it("writes nothing when nothing changes", async () => {
    const change = await rename("shop-front");
    expect(change.changed).toBe(false);
    expect(patchesOf()).toBe(0);
  });

  it("starts again on a conflict, from the live object", async () => {
    harness.apiserver.failNext(isPatch, { status: 409, reason: "Conflict", times: 5 });
    const names: string[] = [];
    await changeProject(project, harness.services, (spec) => {
      names.push(spec.name);
      return { ...spec, name: "renamed-shop" };
    });
    expect(names).toHaveLength(6);
    expect((await live(project)).spec.name).toBe("renamed-shop");
  });

  it("loses none of 50 concurrent ones", async () => {
    await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        changeProject(project, harness.services, (spec) => ({
          ...spec,
          description: `${spec.description ?? ""}${String.fromCharCode(0x100 + index)}`,
        })),
      ),
    );
    expect(new Set((await live(project)).spec.description).size).toBe(50);
  });

  it("passes a refusal on, and writes nothing", async () => {
    const refused = changeProject(project, harness.services, () => {
      throw failures.projectPrivate();
    });
    await expect(refused).rejects.toMatchObject({ status: 409, code: "PROJECT_PRIVATE" });
    expect(patchesOf()).toBe(0);
  });

  it("answers a broken rule with the field as the body calls it", async () => {
    const change = changeProject(project, harness.services, (spec) => ({ ...spec, subdomain: "-bad" }), {
      fields: { subdomain: "domain" },
    });
    await expect(change).rejects.toMatchObject({ status: 400, extra: { errors: [{ field: "domain" }] } });
  });

  it("answers 404 for a project that is deleted, 409 for one that is being deleted", async () => {
    await harness.kube.delete(
      projectResource,
      project.resource.metadata as { namespace: string; name: string },
    );
    await expect(rename("renamed-shop")).rejects.toMatchObject({ status: 404, code: "PROJECT_NOT_FOUND" });
    project = await make("leaving");
    const ref = { namespace: organizationNamespace("acme"), name: "leaving" };
    await harness.kube.patch(projectResource, ref, { metadata: { finalizers: ["slipway.dev/project"] } });
    await harness.kube.delete(projectResource, ref);
    await expect(rename("renamed-shop")).rejects.toMatchObject({
      status: 409,
      code: "PROJECT_ALREADY_DELETED",
    });
  });

  it("prepares before every try, and not for nothing", async () => {
    let prepared = 0;
    const prepare = async () => {
      prepared += 1;
    };
    await changeProject(project, harness.services, (spec) => spec, { prepare });
    expect(prepared).toBe(0);
    harness.apiserver.failNext(isPatch, { status: 409, reason: "Conflict" });
    await changeProject(project, harness.services, (spec) => ({ ...spec, port: 81 }), { prepare });
    expect(prepared).toBe(2);
  });

  // Shows: docs/applications.md#errors-every-operation: 400 | `VALIDATION_FAILED`, with `errors`: the
  it("answers 400 to what only the apiserver's rules refuse, and logs it", async () => {
    const body = {
      message: "denied by policy",
      details: {
        group: "slipway.dev",
        causes: [
          { field: "spec.image.isPublic", message: 'Invalid value: "boolean": not here' },
          { field: "spec.customDomains[1]", message: "not there" },
          { message: "not at all" },
        ],
      },
    };
    const refused = (about: object) =>
      changeProject(project, harness.services, (spec) => ({ ...spec, port: 81 }), {
        fields: { image: "picture" },
        prepare: () =>
          Promise.reject(
            new KubeError({ status: 422, reason: "Invalid", message: "denied", body: { ...body, ...about } }),
          ),
      });
    await expect(refused({})).rejects.toMatchObject({
      status: 400,
      code: "VALIDATION_FAILED",
      cause: { message: "denied by policy" },
      extra: {
        errors: [
          { field: "picture.is_public", message: "not here" },
          { field: "custom_domains[1]", message: "not there" },
          { field: "body", message: "not at all" },
        ],
      },
    });
    // A Secret's fault is the platform's.
    const ofSecret = { details: { ...body.details, group: undefined } };
    await expect(refused(ofSecret)).rejects.toMatchObject({ status: 500, code: "INTERNAL_ERROR" });
  });

  // Shows: docs/applications.md#errors-every-operation: 503 | `CLUSTER_UNAVAILABLE`
  it("answers 503 when the cluster does not", async () => {
    harness.apiserver.failNext(isPatch, { status: 500 });
    await expect(rename("renamed-shop")).rejects.toMatchObject({ status: 503, code: "CLUSTER_UNAVAILABLE" });
  });
});

describe("a new hostname", () => {
  const toSubdomain = (subdomain: string) =>
    changeProject(project, harness.services, (spec) => ({ ...spec, subdomain }));
  const holder = async (hostname: string) => (await readClaim(harness.kube, hostname))?.spec.projectRef.name;

  it("is claimed before the spec contains it", async () => {
    await toSubdomain("one");
    const claim = await harness.kube.get<DomainClaim>(domainClaimResource, { name: `one.${ZONE}` });
    expect(claim.spec).toMatchObject({ kind: "subdomain", projectRef: { name: project.id } });
    expect(claim.spec.reservedFor).toEqual({ generation: 2, at: expect.stringMatching(/^\d{4}-.*Z$/) });
    expect((await live(project)).metadata.generation).toBe(2);
  });

  it("goes to exactly one of two, and the other stays as it was", async () => {
    const other = await make(`rival-${count}`);
    const results = await Promise.allSettled(
      [project, other].map((one) =>
        changeProject(one, harness.services, (spec) => ({ ...spec, subdomain: "contested" })),
      ),
    );
    expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const loser = results.findIndex(({ status }) => status === "rejected");
    expect(results[loser]).toMatchObject({ reason: { code: "DOMAIN_UNAVAILABLE" } });
    expect((await live([project, other][loser] as ApiProject)).spec.subdomain).toBeUndefined();
  });

  it("is released when the write is refused, and kept when it is not known whether it was done", async () => {
    harness.apiserver.failNext(isPatch, { status: 422, reason: "Invalid" });
    await expect(toSubdomain("refused")).rejects.toMatchObject({ status: 500 });
    expect(await holder(`refused.${ZONE}`)).toBeUndefined();
    harness.apiserver.failNext(isPatch, { status: 500 });
    await expect(toSubdomain("unknown")).rejects.toMatchObject({ status: 503 });
    expect(await holder(`unknown.${ZONE}`)).toBe(project.id);
    await toSubdomain("unknown");
  });

  it("that the project removed, and adds again before it is released, counts from now", async () => {
    const name = `back.${ZONE}`;
    await claimHostnames(harness.kube, project.resource, [{ hostname: name, kind: "subdomain" }]);
    await toSubdomain("back");
    const { reservedFor } = ((await readClaim(harness.kube, name)) as DomainClaim).spec;
    expect(reservedFor?.generation).toBe(2);
    const age = Date.now() - Date.parse(reservedFor?.at ?? "");
    expect(Math.abs(age)).toBeLessThan(10_000);
  });

  it("is released although its status was written since, but not when another call has claimed it ahead", async () => {
    const { kube } = harness;
    const at = (seconds: number) => ({ generation: 2, at: new Date(1_000 * seconds) });
    const [free, kept] = ["free", "kept"].map((label) => `${label}-${count}.${ZONE}`) as [string, string];
    const wanted = [free, kept].map((hostname) => ({ hostname, kind: "subdomain" as const }));
    const claimed = await claimHostnames(kube, project.resource, wanted, at(1));
    await kube.patch(domainClaimResource, { name: free }, { status: { message: "reconciled" } });
    await claimHostnames(kube, project.resource, wanted.slice(1), at(2));
    await deleteClaims(kube, claimed);
    expect(await holder(free)).toBeUndefined();
    expect(await holder(kept)).toBe(project.id);
  });

  it("survives a conflict, claimed for the generation that will have it", async () => {
    let tries = 0;
    await changeProject(project, harness.services, (spec) => ({ ...spec, subdomain: "kept" }), {
      prepare: async () => {
        tries += 1;
        if (tries > 1) {
          return;
        }
        harness.apiserver.failNext(isPatch, { status: 409, reason: "Conflict" });
      },
    });
    expect(tries).toBe(2);
    expect(await holder(`kept.${ZONE}`)).toBe(project.id);
  });

  it("of many is taken with all or with none", async () => {
    const other = await make(`taken-${count}`);
    await claimHostnames(harness.kube, other.resource, [{ hostname: "b.example.com", kind: "custom" }]);
    const customDomains = ["c.example.com", "b.example.com", "a.example.com"];
    const change = changeProject(project, harness.services, (spec) => ({ ...spec, customDomains }));
    await expect(change).rejects.toMatchObject({
      code: "DOMAIN_UNAVAILABLE",
      extra: { hostname: "b.example.com" },
    });
    expect(await holder("a.example.com")).toBeUndefined();
    expect(await holder("c.example.com")).toBeUndefined();
  });
});

describe("hostnamesOf", () => {
  it("lists the default domain, then the user's own in order", () => {
    const { resource } = project;
    const spec = { ...resource.spec, customDomains: ["b.example.com", "a.example.com"] };
    expect(hostnamesOf({ ...resource, spec }, ZONE)).toEqual([
      { hostname: defaultDomain(resource, ZONE), kind: "default" },
      { hostname: "a.example.com", kind: "custom" },
      { hostname: "b.example.com", kind: "custom" },
    ]);
    expect(hostnamesOf({ ...resource, spec: { ...resource.spec, exposure: "private" } }, ZONE)).toEqual([]);
  });
});

describe("specErrors", () => {
  it("names every broken rule, spelled as in the body", () => {
    const { spec } = project.resource;
    const storage = { persistent: false, capacity: 2 };
    expect(specErrors({ ...spec, storage }, spec)).toEqual([
      { field: "storage.capacity", message: "storage.capacity must be exactly 1 on free plans" },
    ]);
    expect(specErrors({ ...spec, storage }, spec, { "storage.capacity": "plan" })).toMatchObject([
      { field: "plan" },
    ]);
  });

  it("names a change that is not possible", () => {
    const { spec } = project.resource;
    expect(specErrors({ ...spec, storage: { persistent: false, capacity: 1 } }, spec)).toEqual([]);
    const storage = { persistent: true, capacity: 5, dirPathToPersist: "/data" };
    const wide = { ...spec, plan: "basic", storage };
    expect(specErrors({ ...wide, storage: { ...storage, capacity: 4 } }, wide)).toMatchObject([
      { field: expect.stringContaining("storage") },
    ]);
  });
});
