import { fileURLToPath } from "node:url";
import { catalog, type Project, projectSpec } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import { fieldsOfType } from "../../../crds/src/project/types.ts";
import { goldenTests } from "../../../test/kit/operator/golden.ts";
import { settingsOf } from "../projects/deployments/deployments.ts";
import { withBuiltImage } from "../projects/images/built-image.ts";
import { instancesStep, remainsStep, routeStep } from "./deletion-steps.ts";
import { desired } from "./desired.ts";
import { withSettingsOf } from "./recreate.ts";
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
      storage: "ephemeral",
      persistent: false,
      prices: { hourly: "0", monthly: "0", yearly: "0" },
      ephemeralRequest: "32Mi",
    },
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

/**
 * A case may set, next to the project, the replicas of the autoscaler, settings of the ingress, and which of its
 * custom domains are proved. One that is built from Git has the published build in its status.
 */
interface Case {
  project: Project;
  liveReplicas?: number;
  least?: number;
  ingress?: Partial<HttpPlatform["ingress"]>;
  customHosts?: string[];
  replaces?: boolean;
  templateVersion?: number;
}

function objectsOf(input: unknown) {
  const {
    project: fixture,
    liveReplicas,
    least,
    ingress,
    customHosts,
    replaces,
    templateVersion,
  } = input as Case;
  const project = withBuiltImage(fixture);
  const platform: HttpPlatform = {
    domainZone: "apps.example",
    reservedHostnames: [],
    rolloutDeadlineSeconds: 300,
    ingress: {
      className: "traefik",
      namespace: "ingress",
      annotations: { "example.com/hint": "web" },
      allowList: "traefik",
      ...ingress,
    },
  };
  projectSpec.parse(fixture.spec);
  const [httpPlan] = plans.httpPlans;
  if (!httpPlan) {
    throw new Error("no plan");
  }
  const accepted = { organizationId: "alpha", plan: httpPlan };
  const hosts = { host: wantedHost(project, platform.domainZone), customHosts };
  const app = toHttpApp(project, accepted, { catalog: plans, platform, hosts, liveReplicas, least });
  return desired({ ...app, replaces, templateVersion });
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

test("the same project always has the same objects", () => {
  expect(objectsOf({ project })).toEqual(objectsOf({ project: structuredClone(project) }));
});

test("every kind of child is deleted with its project", () => {
  const withVolume = {
    ...project.spec,
    instances: 2,
    storage: { persistent: true, capacity: 1, dirPathToPersist: "/data" },
    autoscaling: { enabled: true, maxInstances: 4 },
    networkAccess: { ingressWhiteList: [{ cidr: "10.0.0.0/8" }] },
  };
  const scaled = { ...project.spec, instances: 2 };
  const objects = [withVolume, scaled].flatMap((each) => objectsOf({ project: { ...project, spec: each } }));
  const deleted = [routeStep, instancesStep, remainsStep].flatMap((step) => step.delete);
  const kinds = [...new Set(objects.map(({ kind }) => kind))];
  expect(kinds).toEqual(
    expect.arrayContaining(["Deployment", "Ingress", "Middleware", "PersistentVolumeClaim"]),
  );
  expect(kinds.filter((kind) => !deleted.some((resource) => resource.kind === kind))).toEqual([]);
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

// Shows: docs/applications.md#conventions: no pod of a project gets more rights than an application
test("no pod gets more rights than an application needs, whatever its project is like", () => {
  const deployment = objectsOf({ project }).find(({ kind }) => kind === "Deployment");
  expect(deployment).toMatchObject({
    spec: {
      template: {
        spec: {
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          securityContext: { seccompProfile: { type: "RuntimeDefault" } },
          containers: [
            {
              securityContext: {
                allowPrivilegeEscalation: false,
                capabilities: {
                  drop: ["ALL"],
                  add: ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"],
                },
              },
              resources: { limits: { cpu: "1", memory: "1Gi", "ephemeral-storage": "1Gi" } },
            },
          ],
        },
      },
    },
  });
});

describe("the settings' hash", () => {
  const hash = (spec: Partial<Project["spec"]>, liveReplicas?: number) => {
    const object = objectsOf({ project: { ...project, spec: { ...project.spec, ...spec } }, liveReplicas });
    const { spec: applied } = object.find(({ kind }) => kind === "Deployment") as unknown as {
      spec: { template: { metadata: { annotations: Record<string, string> } } };
    };
    return applied.template.metadata.annotations["slipway.dev/settings-hash"];
  };
  const autoscaling = { enabled: true, maxInstances: 4 };

  const unchanged: [string, Partial<Project["spec"]>, number?][] = [
    ["instances", { instances: 3 }],
    ["a pause", { paused: true }],
    ["a sleep", { sleepAfterSeconds: 600 }],
    ["autoscaling", { autoscaling }],
    ["what the autoscaler did", { autoscaling }, 4],
    ["another payment mode", { paymentMode: "monthly" }],
    ["a private project", { exposure: "private" }],
    ["a health check that is off", { healthcheck: { enabled: false, path: "/" } }],
    [
      "the rest of a health check that is off",
      { healthcheck: { enabled: false, livenessPath: "/", startupTimeoutSeconds: 10 } },
    ],
    ["an access list", { networkAccess: { ingressWhiteList: [{ cidr: "10.0.0.0/8" }] } }],
    ["a subdomain", { subdomain: "shop" }],
    ["custom domains", { customDomains: ["shop.example.com"] }],
    ["a pre-deploy command", { preDeployCommand: ["migrate"], preDeployTimeoutSeconds: 60 }],
  ];
  test.each(unchanged)("stays over %s", (_, spec, replicas) => {
    expect(hash(spec, replicas)).toBe(hash({}));
  });

  const changed: [string, Partial<Project["spec"]>][] = [
    ["another image", { image: { url: "registry.example/app:2", isPublic: true } }],
    [
      "a pinned image",
      { image: { url: "registry.example/app:1", digest: `sha256:${"a".repeat(64)}`, isPublic: true } },
    ],
    ["another port", { port: 81 }],
    ["other variables", { envsFrom: [{ name: "p1-env-0123456789ab" }] }],
    ["a command", { command: ["node", "server.js"] }],
    ["a health check", { healthcheck: { enabled: true, path: "/" } }],
    ["a liveness path", { healthcheck: { enabled: true, path: "/", livenessPath: "/" } }],
    ["a limit of the start", { healthcheck: { enabled: true, path: "/", startupTimeoutSeconds: 10 } }],
    ["another time to stop", { terminationGracePeriodSeconds: 31 }],
    ["a restart", { restartedAt: "2026-01-01T00:00:00Z" }],
  ];
  test.each(changed)("changes with %s", (_, spec) => {
    expect(hash(spec)).not.toBe(hash({}));
  });

  test.each(changed)("is the same again after %s, with the settings of the deployment before", (_, spec) => {
    const before = {
      id: "d1",
      status: "succeeded",
      startedAt: "2026-01-01T00:00:00Z",
      settingsHash: hash({}) ?? "",
      updatedImage: true,
      image: { reference: "registry.example/app:1" },
      settings: settingsOf(project),
    } as const;
    const now = { ...project, spec: { ...project.spec, ...spec } };
    expect(hash(withSettingsOf(now, before).spec)).toBe(hash({}));
  });

  // What a project is built from is its image by then, a volume is not restored with a version, and groups are copied before.
  test("is compared for every field of an HTTP project but its source and its volume", () => {
    const compared = [...unchanged, ...changed].flatMap(([, spec]) => Object.keys(spec));
    const { required, optional } = fieldsOfType.http;
    const missing = [...required, ...optional].filter((field) => !compared.includes(field));
    expect(missing).toEqual(["storage", "source", "build", "github", "variableGroups"]);
  });
});

describe("settings are applied to the cluster:", () => {
  const childrenOf = (spec: Partial<Project["spec"]>) => {
    const objects = objectsOf({ project: { ...project, spec: { ...project.spec, ...spec } } });
    const find = (kind: string) => objects.find((object) => object.kind === kind) as unknown;
    const { spec: deployment } = find("Deployment") as {
      spec: {
        replicas?: number;
        progressDeadlineSeconds?: number;
        template: { spec: { containers: Record<string, unknown>[] } };
      };
    };
    return { find, deployment, container: deployment.template.spec.containers[0] };
  };

  // Shows: docs/applications.md#create: `config.port` is what the application listens on
  test("the port, as PORT and behind the Service", () => {
    const { container, find } = childrenOf({ port: 3000 });
    expect(container).toMatchObject({
      env: [{ name: "PORT", value: "3000" }],
      ports: [{ name: "http", containerPort: 3000 }],
    });
    expect(find("Service")).toMatchObject({ spec: { ports: [{ port: 80, targetPort: "http" }] } });
  });

  // Shows: docs/applications.md#create: `config.instances`: at most as many as the plan allows
  test("instances, with a disruption budget for two or more", () => {
    expect(childrenOf({ instances: 1 }).find("PodDisruptionBudget")).toBeUndefined();
    const { deployment, find } = childrenOf({ instances: 3 });
    expect(deployment.replicas).toBe(3);
    expect(find("PodDisruptionBudget")).toMatchObject({ spec: { maxUnavailable: 1 } });
  });

  // Shows: docs/applications.md#create: `config.healthcheck`: on plans that have it, as a readiness
  // Shows: docs/applications.md#health: `path` | the port | readiness: every 5 s; two failures in a
  test("a health check, as the probes' path; without one the port is probed", () => {
    const { container } = childrenOf({ healthcheck: { enabled: true, path: "/ready" } });
    const httpGet = { path: "/ready", port: "http" };
    expect(container).toMatchObject({ startupProbe: { httpGet }, readinessProbe: { httpGet } });
    const off = childrenOf({ healthcheck: { enabled: false, path: "/ready" } }).container;
    expect(off).toMatchObject({ readinessProbe: { tcpSocket: { port: "http" } } });
    expect(JSON.stringify(off)).not.toContain("/ready");
  });

  // Shows: docs/applications.md#create: `config.healthcheck.liveness_path`: an instance that hangs is
  // Shows: docs/applications.md#health: `liveness_path` | none | every 10 s, within 5 s: after three
  test("a liveness path, as a probe that has a hung instance started again within 60 s", () => {
    const { container, deployment } = childrenOf({
      healthcheck: { enabled: true, path: "/ready", livenessPath: "/alive" },
      terminationGracePeriodSeconds: 300,
    });
    const probe = container?.livenessProbe as Record<string, number> | undefined;
    const { httpGet, periodSeconds, timeoutSeconds, failureThreshold, terminationGracePeriodSeconds } =
      probe ?? {};
    expect(httpGet).toEqual({ path: "/alive", port: "http" });
    expect(container).toMatchObject({ readinessProbe: { httpGet: { path: "/ready" } } });
    expect(deployment.template.spec).toMatchObject({ terminationGracePeriodSeconds: 305 });
    // It hung right after it had answered; the kubelet adds 2 s where draining has used up the time to stop.
    const detected = Number(periodSeconds) * Number(failureThreshold) + Number(timeoutSeconds);
    expect(detected + Number(terminationGracePeriodSeconds) + 2).toBeLessThan(50);
    expect(childrenOf({ healthcheck: { enabled: true, path: "/ready" } }).container).not.toHaveProperty(
      "livenessProbe",
    );
  });

  // Shows: docs/applications.md#create: `config.healthcheck.startup_timeout_seconds`: an instance that
  // Shows: docs/applications.md#health: `startup_timeout_seconds` | none | 10 to 3,600: time for an
  test.each([10, 45, 3_600])(
    "a limit of %d s to the start, and no earlier deadline of the rollout",
    (limit) => {
      const { container, deployment } = childrenOf({
        healthcheck: { enabled: true, path: "/ready", startupTimeoutSeconds: limit },
      });
      const probe = container?.startupProbe as Record<string, number> | undefined;
      const { periodSeconds = 0, timeoutSeconds = 0, failureThreshold = 0 } = probe ?? {};
      expect(timeoutSeconds).toBe(periodSeconds);
      expect(Math.abs(failureThreshold * periodSeconds - limit)).toBeLessThan(2);
      expect(deployment.progressDeadlineSeconds).toBe(Math.max(300, limit + 60));
    },
  );

  // Shows: docs/applications.md#create: `config.termination_grace_period_seconds`: 1 to 300, between
  test("the time to stop, after draining", () => {
    const stop = (spec: Partial<Project["spec"]>) => childrenOf(spec).deployment.template.spec;
    expect(stop({})).toMatchObject({ terminationGracePeriodSeconds: 35 });
    expect(stop({ terminationGracePeriodSeconds: 1 })).toMatchObject({ terminationGracePeriodSeconds: 6 });
  });

  // Shows: docs/applications.md#create: `config.autoscaling`: on plans that have it, `max_instances` at
  test("autoscaling, between two numbers of instances, in percent of what the plan sells", () => {
    const targets = { cpuTargetPercentage: 60, memoryTargetPercentage: 75 };
    const { find, deployment } = childrenOf({
      instances: 2,
      autoscaling: { enabled: true, maxInstances: 4, ...targets },
    });
    expect(find("HorizontalPodAutoscaler")).toMatchObject({
      spec: {
        minReplicas: 2,
        maxReplicas: 4,
        metrics: [
          { resource: { name: "cpu", target: { averageValue: "600m" } } },
          { resource: { name: "memory", target: { averageValue: String(0.75 * 1024 ** 3) } } },
        ],
      },
    });
    expect(deployment.replicas).toBe(2);
    const off = childrenOf({ autoscaling: { enabled: false, maxInstances: 4 } });
    expect(off.find("HorizontalPodAutoscaler")).toBeUndefined();
  });

  // Shows: docs/applications.md#scaling-by-requests: beside CPU and memory: the target that needs most instances counts
  // Shows: docs/applications.md#scaling-by-requests: never below `instances`, never above `max_instances`
  test.each([
    [undefined, 2],
    [1, 2],
    [3, 3],
    [9, 4],
  ])("%s instances for its requests are the least of the autoscaler, beside its CPU target", (least, min) => {
    const spec = {
      ...project.spec,
      instances: 2,
      autoscaling: { enabled: true, maxInstances: 4, requestsPerSecondTarget: 10 },
    };
    const objects = objectsOf({ project: { ...project, spec }, least, liveReplicas: 2 });
    const metrics = [{ resource: { name: "cpu", target: { averageValue: "800m" } } }];
    expect(objects.find(({ kind }) => kind === "HorizontalPodAutoscaler")).toMatchObject({
      spec: { minReplicas: min, maxReplicas: 4, metrics },
    });
    // The Deployment's number is the autoscaler's.
    expect(objects.find(({ kind }) => kind === "Deployment")).toMatchObject({ spec: { replicas: 2 } });
  });

  // Shows: docs/applications.md#create: `config.storage`: 1 to 250 GB at `dir_path_to_persist`
  test("storage, as a volume of that size at that path, and none that is not persistent", () => {
    const storage = { persistent: true, capacity: 250, dirPathToPersist: "/var/lib/app" };
    const { find, container } = childrenOf({ storage });
    expect(find("PersistentVolumeClaim")).toMatchObject({
      spec: { resources: { requests: { storage: "250Gi" } } },
    });
    expect(container).toMatchObject({ volumeMounts: [{ mountPath: "/var/lib/app" }] });
    const { dirPathToPersist: _, ...ephemeral } = { ...storage, persistent: false };
    expect(childrenOf({ storage: ephemeral }).find("PersistentVolumeClaim")).toBeUndefined();
  });

  // Shows: docs/applications.md#create: `auth_type` `username_password`
  test("variables and the credentials of a private image, by the Secrets that contain them", () => {
    const { deployment, container } = childrenOf({
      envsFrom: [{ name: "p1-env-0123456789ab" }],
      image: { url: "registry.example/app:1", isPublic: false, pullSecretRef: { name: "p1-pull-1" } },
    });
    expect(container).toMatchObject({ envFrom: [{ secretRef: { name: "p1-env-0123456789ab" } }] });
    expect(deployment.template.spec).toMatchObject({ imagePullSecrets: [{ name: "p1-pull-1" }] });
  });

  // Shows: docs/applications.md#create: `config.exposure`: private has no domain, no subdomain, no
  test("exposure: a private project has no Ingress", () => {
    expect(childrenOf({}).find("Ingress")).toBeDefined();
    expect(childrenOf({ exposure: "private" }).find("Ingress")).toBeUndefined();
    expect(childrenOf({ exposure: "private" }).find("Service")).toBeDefined();
  });
});
