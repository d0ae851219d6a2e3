import { fileURLToPath } from "node:url";
import { catalog, type Project, projectSpec } from "@slipway/crds";
import { expect, test } from "vitest";
import { goldenTests } from "../../testing/golden.ts";
import { desired } from "./desired.ts";
import { type HttpPlatform, toHttpApp, wantedHost } from "./view.ts";

const plan = {
  plan: "premium",
  prices: { hourly: "8", monthly: "5760", yearly: "69120" },
  resources: { requests: { cpu: "15m", memory: "48Mi" }, limits: { cpu: "1", memory: "1Gi" } },
  maxInstances: 5,
  features: [],
  permissions: {},
  capabilities: {
    logs: true,
    metrics: true,
    healthcheck: true,
    autoscaling: true,
    custom_subdomain: true,
    network_access: true,
  },
};
const plans = catalog.parse({
  currency: "brl",
  httpPlans: [plan],
  jobPlans: [],
  storagePlans: [
    {
      storage: "block",
      persistent: true,
      storageClass: "fast",
      prices: { hourly: "1", monthly: "720", yearly: "8640" },
    },
  ],
  databasePlans: [],
  engines: [],
});

/** A case may say beside the project how many replicas the autoscaler has made, and settings of the ingress. */
interface Case {
  project: Project;
  liveReplicas?: number;
  ingress?: Partial<HttpPlatform["ingress"]>;
}

function objectsOf(input: unknown) {
  const { project, liveReplicas, ingress } = input as Case;
  const platform: HttpPlatform = {
    domainZone: "apps.example",
    ingress: {
      className: "traefik",
      namespace: "ingress",
      annotations: { "example.com/hint": "web" },
      allowList: "traefik",
      ...ingress,
    },
  };
  projectSpec.parse(project.spec);
  const [httpPlan] = plans.httpPlans;
  if (!httpPlan) {
    throw new Error("no plan");
  }
  const accepted = { organizationId: "alpha", plan: httpPlan };
  const host = wantedHost(project, platform.domainZone);
  return desired(toHttpApp(project, accepted, { catalog: plans, platform, host, liveReplicas }));
}

goldenTests(fileURLToPath(new URL("testdata", import.meta.url)), objectsOf);

const project: Project = {
  apiVersion: "slipway.dev/v1alpha1",
  kind: "Project",
  metadata: { name: "p1", namespace: "slipway-org-alpha" },
  spec: {
    type: "http",
    name: "project",
    plan: "premium",
    paymentMode: "hourly",
    exposure: "public",
    image: { url: "registry.example/app:1", isPublic: true },
    port: 80,
    instances: 1,
    storage: { persistent: false, capacity: 1 },
    networkAccess: { ingressWhiteList: [{ cidr: "0.0.0.0/0" }] },
  },
};

test("the same project always gives the same objects", () => {
  expect(objectsOf({ project })).toEqual(objectsOf({ project: structuredClone(project) }));
});

test("every child is named after the project and labelled for it, and no pod gets a token", () => {
  for (const object of objectsOf({ project })) {
    expect(object.metadata).toMatchObject({
      name: "p1",
      namespace: "slipway-org-alpha",
      labels: { "slipway.dev/project": "p1", "slipway.dev/organization": "alpha" },
    });
  }
  expect(JSON.stringify(objectsOf({ project }))).toContain('"automountServiceAccountToken":false');
});
