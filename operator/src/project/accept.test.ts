import { readFileSync } from "node:fs";
import { type Project, catalog as schema } from "@slipway/crds";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { TerminalError, WaitingError } from "../runtime/index.ts";
import { exampleProject } from "../testing/projects.ts";
import { accept } from "./accept.ts";

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
const project = (spec: Partial<Project["spec"]> = {}) =>
  exampleProject({ namespace: "slipway-org-alpha", name: "p1" }, spec);

test("a project on a plan of the catalog is accepted, with its organization and plan", () => {
  const accepted = accept(project(), namespace, catalog, ingress);
  expect(accepted.organizationId).toBe("alpha");
  expect(accepted.plan.plan).toBe("basic");
});

test.each<[string, Partial<Project["spec"]>, string]>([
  ["a type that has no reconciler yet", { type: "job" }, "TypeNotSupported"],
  ["a project built from Git", { image: undefined }, "TypeNotSupported"],
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
  const run = () => accept(project(spec), namespace, catalog, ingress);
  expect(run).toThrow(TerminalError);
  expect(run).toThrow(expect.objectContaining({ reason, condition: "Accepted" }));
});

test("what is switched off needs no plan", () => {
  const off = { autoscaling: { enabled: false, maxInstances: 50 }, healthcheck: { enabled: false } };
  expect(() => accept(project({ plan: "free", ...off }), namespace, catalog, ingress)).not.toThrow();
});

test("outside an organization's namespace it is refused, in an unguarded one it waits", () => {
  const elsewhere = exampleProject({ namespace: "default", name: "p1" });
  expect(() => accept(elsewhere, undefined, catalog, ingress)).toThrow(TerminalError);
  expect(() => accept(project(), undefined, catalog, ingress)).toThrow(WaitingError);
  const unguarded = { metadata: { ...namespace.metadata, annotations: {} } };
  expect(() => accept(project(), unguarded, catalog, ingress)).toThrow(WaitingError);
  const foreign = { metadata: { ...namespace.metadata, labels: { "slipway.dev/organization": "beta" } } };
  expect(() => accept(project(), foreign, catalog, ingress)).toThrow(WaitingError);
});

test("an access list needs a plan that has them and, of a public project, an ingress that enforces it", () => {
  const somewhere = { plan: "premium", networkAccess: { ingressWhiteList: [{ cidr: "192.0.2.0/24" }] } };
  const none = { allowList: "none" } as const;
  expect(() => accept(project(somewhere), namespace, catalog, { allowList: "nginx" })).not.toThrow();
  expect(() => accept(project(somewhere), namespace, catalog, none)).toThrow(
    expect.objectContaining({ reason: "FeatureNotSupported", condition: "Accepted" }),
  );
  const closed = project({ ...somewhere, exposure: "private" });
  expect(() => accept(closed, namespace, catalog, none)).not.toThrow();
  expect(() => accept(project(), namespace, catalog, none)).not.toThrow();
});
