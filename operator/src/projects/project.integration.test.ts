import { type KubernetesObject, type Resource, resources } from "@slipway/controller-runtime";
import type { DomainClaim, Project } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  conditionsOf,
  eventually,
  exists,
  serveDeployment,
  startCluster,
  startOperator,
  type TestCluster,
  type TestOperator,
  untilUnchanged,
  whileServed,
} from "../../../test/kit/operator/harness.ts";
import { exampleProject, exampleWorker } from "../../../test/kit/operator/projects.ts";
import type { ProbeResult } from "../domains/ingress-probe.ts";
import { domainClaimResource, projectResource } from "../resources.ts";

const namespace = "slipway-org-alpha";
const CHILDREN: [string, Resource][] = [
  ["Deployment", resources.deployments],
  ["Service", resources.services],
  ["Ingress", resources.ingresses],
  ["NetworkPolicy", resources.networkPolicies],
];

let cluster: TestCluster;
let operator: TestOperator;
let ingress: ProbeResult = "serving";
let asked: string[] = [];
const start = () =>
  startOperator(cluster, {
    listOrganizations: async () => ["alpha"],
    ingressProbe: async (host) => {
      asked.push(host);
      return ingress;
    },
  });

beforeAll(async () => {
  cluster = await startCluster();
  operator = await start();
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
});
afterAll(async () => {
  await operator.stop();
  await cluster.stop();
});

const ref = (name: string) => ({ namespace, name });
const get = (name: string) => cluster.client.get<Project>(projectResource, ref(name));
const create = (name: string, spec: Partial<Project["spec"]> = {}) =>
  cluster.client.create<Project>(projectResource, exampleProject(ref(name), spec));
const patch = (name: string, spec: object) => cluster.client.patch(projectResource, ref(name), { spec });
const appears = (resource: Resource, name: string) =>
  eventually(() => exists(cluster.client, resource, ref(name)));
const phase = (name: string, expected: string) =>
  eventually(async () => {
    const project = await get(name);
    return project.status?.phase === expected && project;
  });
/** The same, while every instance of the Deployment serves. */
const served = (name: string, expected: string) =>
  whileServed(cluster.client, ref(name), async () => {
    const project = await get(name);
    return project.status?.phase === expected && project;
  });
/** Its domain, once its status has it. */
const domainOf = (name: string) => eventually(async () => (await get(name)).status?.domain);
const condition = (name: string, expected: string) =>
  eventually(async () => (await conditionsOf(cluster.client, ref(name))).includes(expected));
async function running(name: string, spec: Partial<Project["spec"]> = {}): Promise<Project> {
  await create(name, spec);
  return served(name, "running");
}

describe("a public project", () => {
  // Shows: docs/applications.md#states: `creating` | new, and nothing is wrong
  test("gets its children and runs only once its route answers", async () => {
    ingress = "unknown-host";
    await create("first");
    for (const [, resource] of CHILDREN) {
      await appears(resource, "first");
    }
    const domain = await domainOf("first");
    await phase("first", "creating");
    expect(domain).toMatch(/^example-[0-9a-f]{8}\.apps\.test$/);
    await serveDeployment(cluster.client, ref("first"));
    await condition("first", "WorkloadAvailable=True/Available");
    await condition("first", "Ready=False/DomainPending");
    expect((await get("first")).status?.phase).toBe("creating");

    ingress = "serving";
    const project = await phase("first", "running");
    expect(project.status).toMatchObject({
      url: `http://${domain}`,
      desiredInstances: 1,
      currentInstances: 1,
      readyInstances: 1,
      maxCpu: "500m",
      maxMemory: "512Mi",
      observedGeneration: project.metadata.generation,
    });
    const claim = await cluster.client.get<DomainClaim>(domainClaimResource, { name: domain });
    expect(claim.spec.projectRef).toEqual({ namespace, name: "first", uid: project.metadata.uid });
    await eventually(async () => {
      const { status } = await cluster.client.get<DomainClaim>(domainClaimResource, { name: domain });
      return status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True");
    });
  });

  test("that an earlier version has written keeps its state in fields instead, and its Deployment as it is", async () => {
    const before = await cluster.client.get(resources.deployments, ref("first"));
    const [at, digest] = ["2026-01-01T00:00:01.250Z", `sha256:${"a".repeat(64)}`];
    const annotations = {
      "slipway.dev/rolled-back": `${at} ${digest}`,
      "slipway.dev/source-revision": "7:0123456789abcdef",
      "slipway.dev/updated-at": at,
      "example.com/note": "kept",
    };
    await cluster.client.patch(projectResource, ref("first"), { metadata: { annotations } });
    const converted = await eventually(async () => {
      const project = await get("first");
      const { status, metadata } = project;
      return project.spec.rollback && status?.observedGeneration === metadata.generation && project;
    });
    expect(converted.spec).toMatchObject({
      rollback: { at, digest },
      sourceRevision: { number: 7, hash: "0123456789abcdef" },
      updatedAt: at,
    });
    expect(Object.keys(converted.metadata.annotations ?? {})).toEqual(["example.com/note"]);
    const after = await cluster.client.get(resources.deployments, ref("first"));
    expect(after.metadata?.resourceVersion).toBe(before.metadata?.resourceVersion);
  });

  test.each(CHILDREN)("gets its %s back when it is deleted", async (_, resource) => {
    const before = await cluster.client.get(resource, ref("first"));
    await cluster.client.delete(resource, ref("first"));
    await eventually(async () => {
      const live = await cluster.client.getOrUndefined(resource, ref("first"));
      return live && live.metadata?.uid !== before.metadata?.uid;
    });
  });

  test("has edited children reverted", async () => {
    await served("first", "running");
    const edited = { spec: { template: { spec: { automountServiceAccountToken: true } } } };
    await cluster.client.patch(resources.deployments, ref("first"), edited);
    const rules = [{ op: "replace", path: "/spec/rules/0/host", value: "stolen.example" }];
    await cluster.client.patch(resources.ingresses, ref("first"), rules, { type: "json" });
    const unlabelled = { metadata: { labels: { "slipway.dev/project": null } } };
    await cluster.client.patch(resources.services, ref("first"), unlabelled);

    const healed = async (resource: Resource, check: (object: never) => unknown) =>
      eventually(async () => check((await cluster.client.get(resource, ref("first"))) as never) === true);
    await healed(
      resources.deployments,
      (live: { spec: { template: { spec: { automountServiceAccountToken: boolean } } } }) =>
        live.spec.template.spec.automountServiceAccountToken === false,
    );
    await healed(
      resources.ingresses,
      (live: { spec: { rules: { host: string }[] } }) => live.spec.rules[0]?.host !== "stolen.example",
    );
    await healed(
      resources.services,
      (live: KubernetesObject) => live.metadata?.labels?.["slipway.dev/project"] === "first",
    );
    await served("first", "running");
  });

  test("loses route and hostname when it becomes private, and gets them again", async () => {
    const { status } = await get("first");
    await patch("first", { exposure: "private" });
    await eventually(
      async () => !(await exists(cluster.client, domainClaimResource, { name: status?.domain ?? "" })),
    );
    expect(await exists(cluster.client, resources.ingresses, ref("first"))).toBe(false);
    await eventually(async () => (await get("first")).status?.domain === undefined);
    await phase("first", "running");
    await patch("first", { exposure: "public" });
    await condition("first", "DomainReady=True/DomainAssigned");
    await appears(resources.ingresses, "first");
  });

  // Shows: docs/applications.md#states: `resuming` | started again after a pause
  test("is stopped without instances, and resumes", async () => {
    await patch("first", { paused: true });
    await phase("first", "deploying");
    await served("first", "stopped");
    await patch("first", { paused: false });
    await phase("first", "resuming");
    await served("first", "running");
  });

  // Shows: docs/applications.md#states: `failing` | something is wrong, and it is retried or the old
  test("keeps failing next to its old version when a rollout misses its deadline", async () => {
    await patch("first", { image: { url: "registry.example/team/app:2.0.0", isPublic: true } });
    await phase("first", "deploying");
    const live = await cluster.client.get<KubernetesObject>(resources.deployments, ref("first"));
    const status = {
      observedGeneration: live.metadata?.generation,
      replicas: 2,
      updatedReplicas: 1,
      readyReplicas: 1,
      availableReplicas: 1,
      conditions: [
        {
          type: "Progressing",
          status: "False",
          reason: "ProgressDeadlineExceeded",
          lastUpdateTime: new Date(Date.now() + 300_000).toISOString(),
        },
      ],
    };
    await cluster.client.patch(resources.deployments, ref("first"), { status }, { subresource: "status" });
    const project = await phase("first", "failing");
    expect(project.status?.image?.reference).toBe("registry.example/team/app:1.0.0");
    expect(await conditionsOf(cluster.client, ref("first"))).toEqual(
      expect.arrayContaining([
        "Ready=False/DeadlineExceeded",
        "RolloutFailed=True/DeadlineExceeded",
        "WorkloadAvailable=True/Available",
      ]),
    );
    await cluster.client.patch(
      resources.deployments,
      ref("first"),
      { status: { conditions: [] } },
      { subresource: "status" },
    );
    expect((await served("first", "running")).status?.image?.reference).toBe(
      "registry.example/team/app:2.0.0",
    );
  });
});

describe("what a project cannot have", () => {
  // Shows: docs/applications.md#states: `failed` | it never served and does not start; the reason is
  test("a hostname of another project, until that one is deleted", async () => {
    await running("holder", { subdomain: "wanted" });
    await create("waiter", { subdomain: "wanted" });
    await condition("waiter", "DomainReady=False/DomainTaken");
    await phase("waiter", "failed");
    expect(await exists(cluster.client, resources.ingresses, ref("waiter"))).toBe(false);

    await cluster.client.delete(projectResource, ref("holder"));
    await condition("waiter", "DomainReady=False/DomainPending");
    await appears(resources.ingresses, "waiter");
  });

  test("a Secret that does not exist, until it does", async () => {
    await create("secretive", { exposure: "private", envsFrom: [{ name: "settings" }] });
    await condition("secretive", "Accepted=False/SecretNotFound");
    expect(await exists(cluster.client, resources.deployments, ref("secretive"))).toBe(false);
    await cluster.client.create<KubernetesObject>(resources.secrets, {
      metadata: { namespace, name: "settings" },
    });
    await appears(resources.deployments, "secretive");
    const secret = await cluster.client.get(resources.secrets, ref("settings"));
    expect(secret.metadata?.ownerReferences).toBeUndefined();
  });

  test.each<[string, Partial<Project["spec"]>, string]>([
    ["a plan that nobody sells", { plan: "imaginary" }, "UnknownPlan"],
    ["what its plan lacks", { plan: "free", healthcheck: { enabled: true, path: "/" } }, "FeatureNotInPlan"],
  ])("%s", async (_, spec, reason) => {
    const name = reason.toLowerCase();
    await create(name, spec);
    await condition(name, `Accepted=False/${reason}`);
    await condition(name, `Ready=False/${reason}`);
    await phase(name, "failed");
    expect(await exists(cluster.client, resources.deployments, ref(name))).toBe(false);
  });

  test("a type that nobody builds yet", async () => {
    const {
      type: _type,
      exposure: _exposure,
      port: _port,
      image: _image,
      ...rest
    } = exampleProject(ref("pg")).spec;
    const spec = { ...rest, type: "postgresql", plan: "db-basic", version: "17" } as Project["spec"];
    await cluster.client.create<Project>(projectResource, { ...exampleProject(ref("pg")), spec });
    await condition("pg", "Accepted=False/TypeNotSupported");
  });

  test("a namespace of its own choosing", async () => {
    await cluster.client.create<KubernetesObject>(resources.namespaces, { metadata: { name: "elsewhere" } });
    const outside = { namespace: "elsewhere", name: "outside" };
    await cluster.client.create<Project>(projectResource, exampleProject(outside));
    await eventually(async () =>
      (await conditionsOf(cluster.client, outside)).includes("Accepted=False/NotInOrganizationNamespace"),
    );
    await cluster.client.delete(projectResource, outside);
    await eventually(async () => !(await cluster.client.getOrUndefined(projectResource, outside)));
  });

  test("an object of somebody else under its name", async () => {
    const foreign = {
      metadata: { ...ref("conflict"), annotations: { mine: "yes" } },
      spec: { ports: [{ port: 1234 }] },
    };
    await cluster.client.create<KubernetesObject>(resources.services, foreign);
    await create("conflict");
    await condition("conflict", "Ready=False/ChildConflict");
    await phase("conflict", "failed");
    const live = await cluster.client.get(resources.services, ref("conflict"));
    expect(live).toMatchObject({
      metadata: { annotations: { mine: "yes" } },
      spec: { ports: [{ port: 1234 }] },
    });
    await cluster.client.delete(projectResource, ref("conflict"));
    await eventually(async () => !(await cluster.client.getOrUndefined(projectResource, ref("conflict"))));
    expect(await exists(cluster.client, resources.services, ref("conflict"))).toBe(true);
  });
});

describe("a worker", () => {
  // Shows: docs/applications.md#workers: it has no address: no Service, no route
  test("runs without an address, is paused and resumed, and is deleted", async () => {
    await cluster.client.create<Project>(projectResource, exampleWorker(ref("worker"), { instances: 2 }));
    const project = await served("worker", "running");
    expect(project.status).toMatchObject({ desiredInstances: 2, readyInstances: 2, maxCpu: "500m" });
    expect(project.status).not.toHaveProperty("domain");
    expect(project.status).not.toHaveProperty("exposure");
    expect(await conditionsOf(cluster.client, ref("worker"))).not.toContainEqual(
      expect.stringContaining("DomainReady"),
    );
    const labelSelector = "slipway.dev/project=worker";
    const without = [resources.services, resources.ingresses, resources.networkPolicies, domainClaimResource];
    for (const resource of without) {
      expect(await cluster.client.listAll(resource, { labelSelector }), resource.kind).toEqual([]);
    }
    expect(await exists(cluster.client, resources.podDisruptionBudgets, ref("worker"))).toBe(true);

    await patch("worker", { paused: true });
    await served("worker", "stopped");
    await patch("worker", { paused: null });
    await served("worker", "running");
    await cluster.client.delete(projectResource, ref("worker"));
    await eventually(async () => !(await cluster.client.getOrUndefined(projectResource, ref("worker"))));
    expect(await cluster.client.listAll(resources.deployments, { labelSelector })).toEqual([]);
  });

  test("whose spec is rejected is paused nevertheless", async () => {
    await cluster.client.create<Project>(projectResource, exampleWorker(ref("worker-two")));
    await served("worker-two", "running");
    await patch("worker-two", { plan: "imaginary", paused: true });
    await condition("worker-two", "Accepted=False/UnknownPlan");
    await eventually(async () => {
      const { spec } = await cluster.client.get<KubernetesObject & { spec: { replicas: number } }>(
        resources.deployments,
        ref("worker-two"),
      );
      return spec.replicas === 0;
    });
  });
});

describe("deletion", () => {
  // Shows: docs/applications.md#delete: it waits for the operator, and nothing of the project is left
  test("leaves nothing, and waits for the volume", async () => {
    const env = {
      metadata: { namespace, name: "whole-env-abc", labels: { "slipway.dev/project": "whole" } },
    };
    await cluster.client.create<KubernetesObject>(resources.secrets, env);
    await create("whole", {
      instances: 2,
      plan: "premium",
      storage: { persistent: true, capacity: 2, dirPathToPersist: "/data" },
      envsFrom: [{ name: "whole-env-abc" }],
    });
    await appears(resources.ingresses, "whole");
    await appears(resources.podDisruptionBudgets, "whole");
    await eventually(async () => {
      const secret = await cluster.client.get(resources.secrets, ref("whole-env-abc"));
      return secret.metadata?.ownerReferences?.[0]?.name === "whole";
    });
    const domain = await domainOf("whole");

    await cluster.client.delete(projectResource, ref("whole"));
    // Nothing removes the finalizer that protects volumes in use here.
    await condition("whole", "Terminating=True/DeletingChildren");
    await eventually(async () => !(await exists(cluster.client, resources.services, ref("whole"))));
    expect(await exists(cluster.client, domainClaimResource, { name: domain })).toBe(false);
    expect(await cluster.client.getOrUndefined(projectResource, ref("whole"))).toBeDefined();
    await cluster.client.patch(resources.persistentVolumeClaims, ref("whole"), {
      metadata: { finalizers: [] },
    });

    await eventually(async () => !(await cluster.client.getOrUndefined(projectResource, ref("whole"))));
    const labelSelector = "slipway.dev/project=whole";
    const kinds = [...CHILDREN.map(([, resource]) => resource), resources.podDisruptionBudgets];
    for (const resource of [
      ...kinds,
      resources.persistentVolumeClaims,
      resources.secrets,
      domainClaimResource,
    ]) {
      expect(await cluster.client.listAll(resource, { labelSelector }), resource.kind).toEqual([]);
    }
  });

  test("by force frees the hostname nevertheless", async () => {
    const project = await running("forced");
    const claim = { name: project.status?.domain ?? "" };
    await operator.stop();
    await cluster.client.delete(projectResource, ref("forced"));
    await cluster.client.patch(projectResource, ref("forced"), { metadata: { finalizers: [] } });
    operator = await start();
    await eventually(async () => !(await cluster.client.getOrUndefined(domainClaimResource, claim)));
  });
});

test("a plan that is given more memory reaches its projects", async () => {
  const limits = operator.catalog.httpPlans.find(({ plan }) => plan === "basic")?.resources.limits;
  const memory = (amount: string) => {
    Object.assign(limits ?? {}, { memory: amount });
    operator.catalogChanged();
    return eventually(async () => {
      const live = await cluster.client.get(resources.deployments, ref("first"));
      return JSON.stringify(live).includes(`"memory":"${amount}"`);
    });
  };
  await memory("640Mi");
  await memory("512Mi");
});

test("an unchanged platform writes nothing and sends the ingress no request, after a restart too", async () => {
  await running("calm-one");
  await running("calm-two", { plan: "premium", instances: 2, subdomain: "calm" });
  for (const name of ["first", "waiter", "secretive"]) {
    await served(name, "running");
  }
  const before = await untilUnchanged(cluster);
  expect(before).toBeGreaterThan(0);
  asked = [];
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  expect((await cluster.operatorWrites()).slice(before)).toEqual([]);
  await operator.stop();
  operator = await start();
  await new Promise((resolve) => setTimeout(resolve, 6_000));
  expect((await cluster.operatorWrites()).slice(before)).toEqual([]);
  expect(asked).toEqual([]);
});
