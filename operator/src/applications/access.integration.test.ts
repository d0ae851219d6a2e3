import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { afterAll, beforeAll, expect, test } from "vitest";
import { installDefinitions, middlewareDefinition } from "../../../test/kit/clusters/definitions.ts";
import {
  conditionsOf,
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  type TestOperator,
} from "../../../test/kit/operator/harness.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { inspectCluster } from "../cluster-check.ts";
import { middlewareResource, projectResource } from "../resources.ts";
import type { AllowList } from "./access.ts";

const namespace = "slipway-org-alpha";
const ref = (name: string) => ({ namespace, name });
const listed = { plan: "premium", networkAccess: { ingressWhiteList: [{ cidr: "192.0.2.0/24" }] } };
const open = { ingressWhiteList: [{ cidr: "0.0.0.0/0" }] };
const traefikKey = "traefik.ingress.kubernetes.io/router.middlewares";
const nginxKey = "nginx.ingress.kubernetes.io/whitelist-source-range";

type Middleware = KubernetesObject & { spec: { ipAllowList: { sourceRange: string[] } } };

let cluster: TestCluster;
let operator: TestOperator | undefined;
const start = async (allowList: AllowList) => {
  await operator?.stop();
  operator = await startOperator(cluster, { listOrganizations: async () => ["alpha"], allowList });
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
};
const create = (name: string, spec: Partial<Project["spec"]>) =>
  cluster.client.create<Project>(projectResource, exampleProject(ref(name), spec));
const patch = (name: string, spec: object) => cluster.client.patch(projectResource, ref(name), { spec });
const remove = async (name: string) => {
  await cluster.client.delete(projectResource, ref(name));
  await eventually(async () => !(await cluster.client.getOrUndefined(projectResource, ref(name))));
};
const annotation = async (name: string, key: string) => {
  const live = await cluster.client.getOrUndefined<KubernetesObject>(resources.ingresses, ref(name));
  return live && { value: live.metadata?.annotations?.[key] };
};
const admits = (name: string, ranges: readonly string[]) =>
  eventually(async () => {
    const live = await cluster.client.getOrUndefined<Middleware>(middlewareResource, ref(name));
    return live && live.spec.ipAllowList.sourceRange.join() === ranges.join() && live;
  });

beforeAll(async () => {
  cluster = await startCluster({ isShared: false });
});
afterAll(async () => {
  await operator?.stop();
  await cluster.stop();
});

const check = (allowList: AllowList) => {
  const ingress = { className: "traefik", namespace: "slipway-ingress", annotations: {}, allowList };
  return inspectCluster(cluster.client, { ingress });
};

test("a start that wants Middlewares is refused by a cluster that does not serve them", async () => {
  const why = expect.stringMatching(/middlewares\.traefik\.io\/v1alpha1.*ingress\.allowList/);
  expect(await check("traefik")).toEqual({ is: "incompatible", why });
  expect(await check("none")).toEqual({ is: "compatible" });
});

test("a start waits for the ingress class, which shows whether access lists are enforced", async () => {
  const why = expect.stringContaining("no ingress class traefik");
  expect(await check("nginx")).toEqual({ is: "unknown", why });
  expect(await check("none")).toEqual({ is: "compatible" });
});

test("a start that would configure access lists for another ingress controller is refused", async () => {
  const { ingressClasses } = resources;
  const named = (controller: string) => ({ metadata: { name: "traefik" }, spec: { controller } });
  await cluster.client.create<KubernetesObject>(ingressClasses, named("k8s.io/ingress-nginx"));
  const why = expect.stringContaining("k8s.io/ingress-nginx, which would admit everybody");
  expect(await check("traefik")).toEqual({ is: "incompatible", why });
  expect(await check("nginx")).toEqual({ is: "compatible" });
  expect(await check("none")).toEqual({ is: "compatible" });
  await cluster.client.delete(ingressClasses, { name: "traefik" });
  await cluster.client.create<KubernetesObject>(ingressClasses, named("traefik.io/ingress-controller"));
  expect(await check("nginx")).toMatchObject({ is: "incompatible" });
});

test("without Traefik, nginx has an annotation, and a deletion ends", async () => {
  await start("nginx");
  await create("by-nginx", listed);
  await eventually(async () => (await annotation("by-nginx", nginxKey))?.value === "192.0.2.0/24");
  await patch("by-nginx", { networkAccess: open });
  await eventually(async () => {
    const found = await annotation("by-nginx", nginxKey);
    return found !== undefined && found.value === undefined;
  });
  await remove("by-nginx");
});

// Shows: docs/applications.md#create: `config.network_access`: the white list without the black list, at
test("an ingress that enforces nothing gets no route to a project with an access list", async () => {
  await start("none");
  await create("unenforced", listed);
  await eventually(async () =>
    (await conditionsOf(cluster.client, ref("unenforced"))).includes("Accepted=False/FeatureNotSupported"),
  );
  expect(await exists(cluster.client, resources.ingresses, ref("unenforced"))).toBe(false);
  await remove("unenforced");
});

test("Traefik finds the Middleware before an Ingress names it", async () => {
  await installDefinitions(cluster.client, [await middlewareDefinition()]);
  expect(await check("traefik")).toEqual({ is: "compatible" });
  await start("traefik");
  await create("listed", listed);
  const middleware = await admits("listed", ["192.0.2.0/24"]);
  await eventually(async () => {
    const found = await annotation("listed", traefikKey);
    return found?.value === "slipway-org-alpha-listed@kubernetescrd";
  });
  const ingress = await cluster.client.get<KubernetesObject>(resources.ingresses, ref("listed"));
  expect(BigInt(middleware.metadata?.resourceVersion ?? "0")).toBeLessThan(
    BigInt(ingress.metadata?.resourceVersion ?? "0"),
  );
});

test("a changed list is changed, and one that was edited or deleted by hand is healed", async () => {
  await patch("listed", {
    networkAccess: {
      ingressWhiteList: [{ cidr: "192.0.2.0/24" }, { cidr: "2001:db8::/32" }],
      ingressBlackList: [{ cidr: "192.0.2.0/25" }],
    },
  });
  const ranges = ["192.0.2.128/25", "2001:db8::/32"];
  await admits("listed", ranges);
  const wide = { spec: { ipAllowList: { sourceRange: ["0.0.0.0/0"] } } };
  await cluster.client.patch(middlewareResource, ref("listed"), wide);
  await admits("listed", ranges);
  await cluster.client.delete(middlewareResource, ref("listed"));
  await admits("listed", ranges);
});

test("an opened project keeps no Middleware, nor does a private or a deleted one", async () => {
  const isDeleted = () =>
    eventually(async () => !(await exists(cluster.client, middlewareResource, ref("listed"))));
  await patch("listed", { networkAccess: { ...open, ingressBlackList: null } });
  await isDeleted();
  expect(await annotation("listed", traefikKey)).toEqual({ value: undefined });

  await patch("listed", listed);
  await admits("listed", ["192.0.2.0/24"]);
  await patch("listed", { exposure: "private" });
  await isDeleted();
  expect(await exists(cluster.client, resources.ingresses, ref("listed"))).toBe(false);

  await patch("listed", { exposure: "public" });
  await admits("listed", ["192.0.2.0/24"]);
  await remove("listed");
  expect(await exists(cluster.client, middlewareResource, ref("listed"))).toBe(false);
});
