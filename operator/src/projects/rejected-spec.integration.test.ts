import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import type { DomainClaim, Project } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  conditionsOf,
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  type TestOperator,
  untilUnchanged,
  whileServed,
} from "../../../test/kit/operator/harness.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import type { AllowList } from "../applications/access.ts";
import { type RegistryLogin, RegistryLoginError } from "../registry/ecr.ts";
import { domainClaimResource, middlewareResource, projectResource } from "../resources.ts";

/** What still takes effect of a rejected spec: a pause, access lists, removed hostnames. */

type Deployment = KubernetesObject & { spec: { replicas: number } };
type Ingress = KubernetesObject & { spec: { rules: { host: string }[] } };
type Middleware = KubernetesObject & { spec: { ipAllowList: { sourceRange: string[] } } };

const namespace = "slipway-org-alpha";
const ref = (name: string) => ({ namespace, name });
const missing = { envsFrom: [{ name: "missing" }] };
const listed = { networkAccess: { ingressWhiteList: [{ cidr: "192.0.2.0/24" }] } };
const open = { networkAccess: { ingressWhiteList: [{ cidr: "0.0.0.0/0" }] } };
const traefikKey = "traefik.ingress.kubernetes.io/router.middlewares";

let cluster: TestCluster;
let operator: TestOperator;
/** Account ids with which a log-in was tried; only the good one succeeds. */
const logins: string[] = [];
const registryLogin: RegistryLogin = async ({ accountId }) => {
  logins.push(accountId);
  if (accountId !== "good") {
    throw new RegistryLoginError("The registry refuses the credentials.", {
      refused: true,
      cause: undefined,
    });
  }
  const expiresAt = new Date(Date.now() + 3_600_000);
  return { host: "registry.example", username: "AWS", password: "token", expiresAt };
};
const start = (allowList: AllowList) =>
  startOperator(cluster, { listOrganizations: async () => ["alpha"], allowList, registryLogin });

beforeAll(async () => {
  cluster = await startCluster();
  operator = await start("traefik");
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
});
afterAll(async () => {
  await operator?.stop();
  await cluster?.stop();
});

const get = (name: string) => cluster.client.get<Project>(projectResource, ref(name));
const patch = (name: string, spec: object) => cluster.client.patch(projectResource, ref(name), { spec });
const condition = (name: string, expected: string) =>
  eventually(async () => (await conditionsOf(cluster.client, ref(name))).includes(expected));
/** Waits for a phase while every instance that the Deployment is to have serves. */
const served = (name: string, expected: string) =>
  whileServed(cluster.client, ref(name), async () => (await get(name)).status?.phase === expected);
const seen = (name: string) =>
  eventually(async () => {
    const project = await get(name);
    return project.status?.observedGeneration === project.metadata.generation && project;
  });
const ingressOf = (name: string) => cluster.client.getOrUndefined<Ingress>(resources.ingresses, ref(name));
const replicas = async (name: string) =>
  (await cluster.client.get<Deployment>(resources.deployments, ref(name))).spec.replicas;
const admits = async (name: string) => {
  const live = await cluster.client.getOrUndefined<Middleware>(middlewareResource, ref(name));
  const annotations = (await ingressOf(name))?.metadata?.annotations;
  return annotations?.[traefikKey] === `${namespace}-${name}@kubernetescrd`
    ? live?.spec.ipAllowList.sourceRange
    : undefined;
};
const isClaimed = (subdomain: string) =>
  cluster.client.getOrUndefined<DomainClaim>(domainClaimResource, { name: `${subdomain}.apps.test` });

async function running(name: string, spec: Partial<Project["spec"]> = {}): Promise<void> {
  const project = exampleProject(ref(name), { plan: "premium", ...spec });
  await cluster.client.create<Project>(projectResource, project);
  await served(name, "running");
}

describe("a pause", () => {
  // Shows: docs/applications.md#states: `stopped` | paused, without an instance
  test("stops the instances while a Secret is missing, and is stopped only without any", async () => {
    await running("rejected", {
      instances: 2,
      autoscaling: { enabled: true, maxInstances: 4, cpuTargetPercentage: 80 },
    });
    expect(await exists(cluster.client, resources.horizontalPodAutoscalers, ref("rejected"))).toBe(true);
    await patch("rejected", { paused: true, ...missing });
    await condition("rejected", "Accepted=False/SecretNotFound");
    await eventually(async () => (await replicas("rejected")) === 0);
    expect(await exists(cluster.client, resources.horizontalPodAutoscalers, ref("rejected"))).toBe(false);
    await condition("rejected", "Progressing=True/Pausing");
    expect((await get("rejected")).status).toMatchObject({ phase: "deploying", readyInstances: 2 });
    await served("rejected", "stopped");
    expect((await get("rejected")).status).toMatchObject({ desiredInstances: 0, readyInstances: 0 });
    expect(await conditionsOf(cluster.client, ref("rejected"))).toEqual(
      expect.arrayContaining(["Progressing=False/Paused", "WorkloadAvailable=False/Paused"]),
    );
  });

  test("ends as any other: the instances are as asked, and nobody else's", async () => {
    await patch("rejected", { envsFrom: null });
    await condition("rejected", "Accepted=True/Accepted");
    expect(await replicas("rejected")).toBe(0);
    await patch("rejected", { paused: false });
    await eventually(async () => (await replicas("rejected")) === 2);
    await eventually(() => exists(cluster.client, resources.horizontalPodAutoscalers, ref("rejected")));
    await patch("rejected", { instances: 3 });
    await eventually(async () => (await replicas("rejected")) === 3);
  });

  test("that ends before its project is accepted starts the instances again then", async () => {
    await running("brief");
    await patch("brief", { paused: true, plan: "imaginary" });
    await condition("brief", "Accepted=False/UnknownPlan");
    await eventually(async () => (await replicas("brief")) === 0);
    await patch("brief", { paused: false });
    await seen("brief");
    expect(await replicas("brief")).toBe(0);
    await patch("brief", { plan: "premium" });
    await eventually(async () => (await replicas("brief")) === 1);
  });
});

describe("credentials that the registry refuses", () => {
  const imageWith = (name: string) => ({
    image: { url: "registry.example/team/app:1.0.0", isPublic: false, awsCredentialsRef: { name } },
  });
  const credentials = (accountId: string) => {
    const plain = { accessKeyId: "id", secretAccessKey: "secret", region: "eu-west-1", accountId };
    const data = Object.entries(plain).map(([key, value]) => [key, Buffer.from(value).toString("base64")]);
    const secret = {
      metadata: ref(accountId),
      type: "slipway.dev/aws-registry",
      data: Object.fromEntries(data),
    };
    return cluster.client.create<KubernetesObject>(resources.secrets, secret);
  };

  test("keep nobody's access list from being enforced, and no pause from holding", async () => {
    for (const accountId of ["good", "bad", "worse"]) {
      await credentials(accountId);
    }
    await running("private-image", imageWith("good"));
    await patch("private-image", { ...listed, ...imageWith("bad") });
    await condition("private-image", "RegistryReady=False/RegistryLoginFailed");
    await eventually(async () => (await admits("private-image"))?.join() === "192.0.2.0/24");
    await patch("private-image", { paused: true });
    await eventually(async () => (await replicas("private-image")) === 0);
    await served("private-image", "stopped");
    expect(await conditionsOf(cluster.client, ref("private-image"))).toContain("Accepted=True/Accepted");
  });

  test("are not tried while the project is paused", async () => {
    await patch("private-image", imageWith("worse"));
    await seen("private-image");
    expect(logins).not.toContain("worse");
    await patch("private-image", { paused: false });
    await condition("private-image", "RegistryReady=False/RegistryLoginFailed");
    expect(logins).toContain("worse");
    expect(await replicas("private-image")).toBe(0);
    await patch("private-image", imageWith("good"));
    await eventually(async () => (await replicas("private-image")) === 1);
  });
});

describe("an access list", () => {
  // Shows: docs/applications.md#create: `config.network_access`: the white list without the black list
  test.each<[string, object, object, string]>([
    ["a Secret is missing", missing, { envsFrom: null }, "SecretNotFound"],
    ["its plan is unknown", { plan: "imaginary" }, { plan: "premium" }, "UnknownPlan"],
    ["its plan has none", { plan: "free" }, { plan: "premium" }, "FeatureNotInPlan"],
  ])("closes an open project while %s, and opens it again", async (_, wrong, right, reason) => {
    const name = reason.toLowerCase();
    await running(name);
    expect((await ingressOf(name))?.metadata?.annotations?.[traefikKey]).toBeUndefined();
    await patch(name, { ...listed, ...wrong });
    await condition(name, `Accepted=False/${reason}`);
    await eventually(async () => (await admits(name))?.join() === "192.0.2.0/24");
    await patch(name, { ...open, ...right });
    await condition(name, "Accepted=True/Accepted");
    await eventually(async () => {
      const route = await ingressOf(name);
      return route && route.metadata?.annotations?.[traefikKey] === undefined;
    });
    await eventually(async () => !(await exists(cluster.client, middlewareResource, ref(name))));
  });

  test("removes the route of a project whose objects cannot be changed", async () => {
    await running("foreign");
    const spec = { ipAllowList: { sourceRange: ["0.0.0.0/0"] } };
    await cluster.client.create<Middleware>(middlewareResource, { metadata: ref("foreign"), spec });
    await patch("foreign", listed);
    await condition("foreign", "Ready=False/ChildConflict");
    await eventually(async () => !(await ingressOf("foreign")));
    await condition("foreign", "DomainReady=False/DomainPending");
    await cluster.client.delete(middlewareResource, ref("foreign"));
    await eventually(async () => (await admits("foreign"))?.join() === "192.0.2.0/24", 90_000);
  });

  test("of a new project that is not accepted makes no route", async () => {
    const project = exampleProject(ref("unborn"), { plan: "premium", ...listed, ...missing });
    await cluster.client.create<Project>(projectResource, project);
    await condition("unborn", "Accepted=False/SecretNotFound");
    expect(await ingressOf("unborn")).toBeUndefined();
    expect(await conditionsOf(cluster.client, ref("unborn"))).not.toContainEqual(
      expect.stringMatching(/^DomainReady/),
    );
  });

  test("that the ingress does not enforce removes the route, until the list is removed", async () => {
    await operator.stop();
    operator = await start("none");
    await running("unenforced");
    expect(await ingressOf("unenforced")).toBeDefined();
    await patch("unenforced", { ...listed, ...missing });
    await eventually(async () => !(await ingressOf("unenforced")));
    await condition("unenforced", "Accepted=False/FeatureNotSupported");
    await condition("unenforced", "DomainReady=False/DomainPending");
    await patch("unenforced", { ...open, envsFrom: null });
    await eventually(() => ingressOf("unenforced"));
    await operator.stop();
    operator = await start("traefik");
  });
});

describe("hostnames that are removed", () => {
  test("are free while a Secret is missing, and what leads to the project moves on", async () => {
    await running("moved", { subdomain: "before" });
    await patch("moved", { subdomain: "after", ...missing });
    await eventually(async () => (await ingressOf("moved"))?.spec.rules[0]?.host === "after.apps.test");
    await eventually(async () => !(await isClaimed("before")));
    // The status is written last.
    await eventually(async () => (await get("moved")).status?.domain === "after.apps.test");
    expect(await conditionsOf(cluster.client, ref("moved"))).toContain("Accepted=False/SecretNotFound");
  });

  test("are free when it becomes private, and it may go back before it is accepted", async () => {
    await patch("moved", { exposure: "private", subdomain: null });
    await eventually(async () => !(await isClaimed("after")));
    const { status } = await eventually(async () => {
      const project = await get("moved");
      return project.status?.exposure?.current === "private" && project;
    });
    expect(status?.exposure).toEqual({ current: "private" });
    expect(status?.domain).toBeUndefined();

    await patch("moved", { exposure: "public", subdomain: "before" });
    expect((await seen("moved")).status?.exposure).toEqual({ current: "private" });
    expect(await ingressOf("moved")).toBeUndefined();
    await patch("moved", { envsFrom: null });
    await eventually(async () => (await get("moved")).status?.exposure?.current === "public");
    expect((await ingressOf("moved"))?.spec.rules[0]?.host).toBe("before.apps.test");
  });
});

test("what is unchanged is not written again", async () => {
  await patch("moved", { ...listed, ...missing });
  await eventually(async () => (await admits("moved"))?.join() === "192.0.2.0/24");
  await patch("rejected", { paused: true, ...missing });
  await eventually(async () => (await replicas("rejected")) === 0);
  await served("rejected", "stopped");
  await untilUnchanged(cluster);
  const about = async () =>
    (await cluster.operatorWrites()).filter((line) => / moved|rejected/.test(line)).toSorted();
  const before = await about();
  // Both poll for their Secret every 5 s.
  await new Promise((resolve) => setTimeout(resolve, 6_000));
  expect(await about()).toEqual(before);
});
