import { readFileSync } from "node:fs";
import { type Project, catalog as schema } from "@slipway/crds";
import { expect, it, test } from "vitest";
import { parse } from "yaml";
import { exampleJob, exampleProject, exampleWorker } from "../../../test/kit/operator/projects.ts";
import { acceptHttp } from "../applications/kind.ts";
import { validateJob } from "../jobs/kind.ts";
import { TerminalError, WaitingError } from "../reconcile-errors.ts";
import { creationPendingMs, organizationOf, refuseForeignBuild } from "./accept.ts";

const file = new URL("../../../charts/slipway/files/catalog.yaml", import.meta.url);
const catalog = schema.parse(parse(readFileSync(file, "utf8")));
const namespace = {
  metadata: {
    name: "slipway-org-alpha",
    labels: { "slipway.dev/organization": "alpha" },
    annotations: { "slipway.dev/guarded": "true" },
  },
};
const ingress = { allowList: "traefik" } as const;
const ref = { namespace: "slipway-org-alpha", name: "p1" };
const project = (spec: Partial<Project["spec"]> = {}) => exampleProject(ref, spec);

test("a project on a plan of the catalog is accepted, with its organization and plan", () => {
  expect(organizationOf(project(), namespace)).toBe("alpha");
  expect(acceptHttp(project(), catalog, ingress).plan).toBe("basic");
  expect(validateJob(exampleJob(ref), catalog).plan).toBe("job-basic");
});

test.each<[string, Partial<Project["spec"]>, string]>([
  ["a project without an image", { image: undefined }, "TypeNotSupported"],
  ["a plan of another type", { plan: "db-basic" }, "PlanIncompatible"],
  ["a plan that does not exist", { plan: "nothing" }, "UnknownPlan"],
  [
    "a health check that the plan lacks",
    { plan: "free", healthcheck: { enabled: true, path: "/" } },
    "FeatureNotInPlan",
  ],
  [
    "autoscaling that the plan lacks",
    { autoscaling: { enabled: true, maxInstances: 2 } },
    "FeatureNotInPlan",
  ],
  ["more instances than the plan has", { instances: 50 }, "FeatureNotInPlan"],
  [
    "an access list that the plan lacks",
    { networkAccess: { ingressWhiteList: [{ cidr: "192.0.2.0/24" }] } },
    "FeatureNotInPlan",
  ],
])("%s is refused for good", (_, spec, reason) => {
  const run = () => acceptHttp(project(spec), catalog, ingress);
  expect(run).toThrow(TerminalError);
  expect(run).toThrow(expect.objectContaining({ reason, condition: "Accepted" }));
});

test.each<[string, Partial<Project["spec"]>, boolean, string]>([
  ["without an image", { image: undefined }, true, "TypeNotSupported"],
  ["on a plan of another type", { plan: "basic" }, true, "PlanIncompatible"],
  ["on a plan that does not exist", { plan: "job-nothing" }, true, "UnknownPlan"],
  ["without a schedule", { job: undefined }, true, "FeatureNotSupported"],
  ["on a platform without jobs", {}, false, "FeatureNotSupported"],
])("a job %s is refused for good", (_, spec, jobsEnabled, reason) => {
  const run = () => validateJob(exampleJob(ref, spec), { ...catalog, jobsEnabled });
  expect(run).toThrow(TerminalError);
  expect(run).toThrow(expect.objectContaining({ reason, condition: "Accepted" }));
});

test("a worker has the plans of HTTP projects, and what they allow", () => {
  const worker = (spec: Partial<Project["spec"]>) => acceptHttp(exampleWorker(ref, spec), catalog, ingress);
  expect(worker({}).plan).toBe("basic");
  expect(() => worker({ plan: "job-basic" })).toThrow("The plan job-basic is not for workers.");
  expect(() => worker({ instances: 50 })).toThrow(expect.objectContaining({ reason: "FeatureNotInPlan" }));
  const scaled = { autoscaling: { enabled: true, maxInstances: 2 } };
  expect(() => worker(scaled)).toThrow(expect.objectContaining({ reason: "FeatureNotInPlan" }));
});

test("a disabled project needs no plan", () => {
  const off = { autoscaling: { enabled: false, maxInstances: 50 }, healthcheck: { enabled: false } };
  expect(() => acceptHttp(project({ plan: "free", ...off }), catalog, ingress)).not.toThrow();
});

test("outside an organization's namespace it is refused, in one that is not provisioned it waits", () => {
  const elsewhere = exampleProject({ namespace: "default", name: "p1" });
  expect(() => organizationOf(elsewhere, undefined)).toThrow(TerminalError);
  expect(() => organizationOf(project(), undefined)).toThrow(WaitingError);
  const unprovisioned = { metadata: { ...namespace.metadata, annotations: {} } };
  expect(() => organizationOf(project(), unprovisioned)).toThrow(WaitingError);
  const foreign = { metadata: { ...namespace.metadata, labels: { "slipway.dev/organization": "beta" } } };
  expect(() => organizationOf(project(), foreign)).toThrow(WaitingError);
});

test("an access list needs a plan that has them and, of a public project, an ingress that enforces it", () => {
  const somewhere = { plan: "premium", networkAccess: { ingressWhiteList: [{ cidr: "192.0.2.0/24" }] } };
  const none = { allowList: "none" } as const;
  expect(() => acceptHttp(project(somewhere), catalog, { allowList: "nginx" })).not.toThrow();
  expect(() => acceptHttp(project(somewhere), catalog, none)).toThrow(
    expect.objectContaining({ reason: "FeatureNotSupported", condition: "Accepted" }),
  );
  const closed = project({ ...somewhere, exposure: "private" });
  expect(() => acceptHttp(closed, catalog, none)).not.toThrow();
  expect(() => acceptHttp(project(), catalog, none)).not.toThrow();
});

test.each([
  ["builds.example:5001/beta/p1@sha256:00", "builds.example:5001"],
  ["builds.example:5001/beta/p1:latest", "builds.example:5001"],
  ["BUILDS.example:5001/beta/p1", "builds.example:5001"],
  ["builds.example.:5001/beta/p1", "builds.example:5001"],
  ["builds.example:443/beta/p1", "builds.example"],
  ["builds.example/beta/p1", "builds.example:443"],
  ["builds.example/alpha", "builds.example"],
  ["builds.example/alphabet/p1", "builds.example"],
])("%s is of no organization alpha in the registry %s", (url, host) => {
  const other = project({ image: { url, isPublic: true } });
  expect(() => refuseForeignBuild(other, "alpha", host)).toThrow(
    expect.objectContaining({ reason: "ImageOfOthers" }),
  );
});

test.each([
  ["builds.example:5001/alpha/p1@sha256:00", "builds.example:5001"],
  ["other.example/beta/p1", "builds.example"],
  ["nginx", "builds.example"],
  ["builds.example/beta/p1", undefined],
])("%s may run next to the registry %s", (url, host) => {
  expect(() => refuseForeignBuild(project({ image: { url, isPublic: true } }), "alpha", host)).not.toThrow();
});

const born = "2026-01-01T00:00:00Z";
const at = (second: number) => new Date(Date.parse(born) + second * 1000);

it.each([
  ["is left to the API", true, {}, 10, 20_000],
  ["is no longer left to an API that must have died", true, {}, 31, 0],
  ["is not, once everything is claimed", undefined, {}, 10, 0],
  ["is not, when it is being deleted", true, { deletionTimestamp: born }, 10, 0],
])("a new project %s", (_name, creationPending, more, second, left) => {
  const metadata = { name: "shop", creationTimestamp: born, ...more };
  const project = { metadata, spec: { creationPending } } as Project;
  expect(creationPendingMs(project, at(second))).toBe(left);
});
