import { request } from "undici";
import { afterAll, describe, expect, test } from "vitest";
import { recordFigures } from "../../hack/testing/figures.ts";
import { isLong } from "../kit/long.ts";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  readProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { throughIngress } from "./support/ingress.ts";
import { namespaceOf, stack } from "./support/stack.ts";
import { traffic } from "./support/traffic.ts";

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

const namespace = namespaceOf(stack.organization);
/** Ranges that no client of these tests comes from. */
const elsewhere = "203.0.113.0/24";
const elsewhereByIpv6 = "2001:db8::/32";
const everybody = "0.0.0.0/0";

interface Lists {
  readonly white: readonly string[];
  readonly black?: readonly string[];
}

/** The same lists, and whether they admit the client on this machine. Over the API the first two; all of them by kubectl. */
const cases: [string, Lists, boolean][] = [
  ["white list of the client", { white: [stack.clientCidr] }, true],
  ["white list of another range", { white: [elsewhere] }, false],
  ["everybody but the client", { white: [everybody], black: [stack.clientCidr] }, false],
  ["everybody but another range", { white: [everybody], black: [elsewhere, elsewhereByIpv6] }, true],
  ["white list of IPv6 alone", { white: [elsewhereByIpv6] }, false],
  [
    "the client among IPv6 ranges with holes",
    { white: [stack.clientCidr, elsewhereByIpv6], black: ["2001:db8:8000::/33"] },
    true,
  ],
  ["nobody at all", { white: [stack.clientCidr], black: [everybody] }, false],
];

const customObject = (name: string) => ({
  group: "slipway.dev",
  version: "v1alpha1",
  plural: "projects",
  namespace,
  name,
});

/** Changes a project's spec as `kubectl patch --type=json` does. */
const patchSpec = (name: string, path: string, value: unknown) =>
  cluster.custom.patchNamespacedCustomObject({
    ...customObject(name),
    body: [{ op: "replace", path: `/spec/${path}`, value }],
  });

const setLists = (name: string, { white, black = [] }: Lists) =>
  patchSpec(name, "networkAccess", {
    ingressWhiteList: white.map((cidr) => ({ cidr })),
    ingressBlackList: black.map((cidr) => ({ cidr })),
  });

const answers = (domain: string, status: number) =>
  eventually(async () => expect((await throughIngress(domain)).status).toBe(status), {
    within: 30_000,
    every: 200,
  });

async function listedProject({ white, black = [] }: Lists) {
  const item = (cidr: string) => ({ cidr, description: "a range" });
  const network_access = { ingress_white_list: white.map(item), ingress_black_list: black.map(item) };
  const body = { ...httpProject(uniqueName("listed"), { network_access }), plan: "premium" };
  const project = await createProject(call, body);
  made.push(project.project_id);
  await untilStatus(call, project.project_id, "running");
  expect(await readProject(call, project.project_id)).toMatchObject({ network_access });
  return { id: project.project_id, domain: project.domain };
}

describe("over the API", () => {
  // Shows: docs/applications.md#fields-of-answers: network access | items of `cidr` and `description`
  // Shows: docs/applications.md#create: `config.network_access`: the white list without the black list
  test.concurrent.each(isLong ? cases : cases.slice(0, 2))("%s", async (_, lists, admitted) => {
    const { domain } = await listedProject(lists);
    // Running means that it answers, or refuses: no retry here.
    for (let i = 0; i < 20; i += 1) {
      expect(await throughIngress(domain)).toMatchObject({ status: admitted ? 200 : 403 });
    }
  });

  // Shows: docs/applications.md#errors-project-creation: 403 | `NETWORK_ACCESS_NOT_AVAILABLE_FOR_PLAN`
  test("a plan without network access takes none", async () => {
    const network_access = { ingress_white_list: [{ cidr: elsewhere, description: "" }] };
    const answer = await call("POST", "/v1/project", httpProject(uniqueName("listed"), { network_access }));
    expect(answer).toMatchObject({ status: 403, body: { code: "NETWORK_ACCESS_NOT_AVAILABLE_FOR_PLAN" } });
  });
});

describe.concurrent("by kubectl", () => {
  // Shows: docs/applications.md#create: `config.network_access`: the white list without the black list
  test("every change of the lists is seen at the ingress, and an open list leaves nothing behind", async () => {
    const { id, domain } = await listedProject({ white: [everybody] });
    for (const [, lists, admitted] of cases) {
      await setLists(id, lists);
      await answers(domain, admitted ? 200 : 403);
    }
    await setLists(id, { white: [everybody] });
    await answers(domain, 200);
    const labelSelector = `slipway.dev/project=${id}`;
    await eventually(async () => {
      const left = (await cluster.custom.listNamespacedCustomObject({
        group: "traefik.io",
        version: "v1alpha1",
        namespace,
        plural: "middlewares",
        labelSelector,
      })) as { items: unknown[] };
      expect(left.items).toEqual([]);
    });
  });

  test("a client that is admitted before and after a change loses no request by it", async () => {
    const { id, domain } = await listedProject({ white: [everybody] });
    const running = traffic(domain);
    for (let i = 0; i < 2; i += 1) {
      for (const white of [[stack.clientCidr], [stack.clientCidr, elsewhere], [everybody]]) {
        await setLists(id, { white });
        await new Promise((resolve) => setTimeout(resolve, 4_000));
      }
    }
    const { sent, failures } = await running.stop();
    // Twenty a second, fewer on a busy machine.
    expect(sent).toBeGreaterThan(200);
    expect(failures).toEqual([]);
  });

  test("a client that is not admitted is never served, not even while the list itself is removed", async () => {
    const { id, domain } = await listedProject({ white: [elsewhere] });
    const running = traffic(domain);
    for (let i = 0; i < 5; i += 1) {
      // The operator has restored it before it is deleted again.
      await eventually(() =>
        cluster.custom.deleteNamespacedCustomObject({
          ...customObject(id),
          group: "traefik.io",
          plural: "middlewares",
        }),
      );
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
    await patchSpec(id, "image/url", stack.imageHttpV2);
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    const { sent, failures, versions } = await running.stop();
    expect(failures).toHaveLength(sent);
    expect(versions).toEqual([]);
    await answers(domain, 403);

    // What a client says of itself counts for nothing.
    const address = elsewhere.replace("0/24", "7");
    const forged = { host: domain, "x-forwarded-for": address, "x-real-ip": address };
    const { statusCode, body } = await request(stack.ingressUrl, { headers: forged });
    await body.dump();
    expect(statusCode).toBe(403);
  });

  test("a rollout behind an access list loses no request at 20 a second", async () => {
    const { id, domain } = await listedProject({ white: [stack.clientCidr], black: [elsewhere] });
    const running = traffic(domain);
    const versions: string[] = [];
    for (const image of [stack.imageHttpV2, stack.imageHttp]) {
      await patchSpec(id, "image/url", image);
      await eventually(async () => {
        const live = (await cluster.custom.getNamespacedCustomObject(customObject(id))) as {
          metadata: { generation: number };
          status: { observedGeneration: number; phase: string; image: { reference: string } };
        };
        expect(live.status).toMatchObject({ phase: "running", image: { reference: image } });
      });
      versions.push(/"version":"([^"]+)"/.exec((await throughIngress(domain)).text)?.[1] ?? "");
      // The old instances drain meanwhile.
      await new Promise((resolve) => setTimeout(resolve, 8_000));
    }
    const report = await running.stop();
    await recordFigures("failover", "rollouts behind an access list", {
      requests: report.sent,
      failed: report.failures.length,
    });
    expect(report.failures).toEqual([]);
    expect(new Set(versions).size).toBe(2);
    expect([...report.versions].sort()).toEqual([...versions].sort());
  });

  // Shows: docs/applications.md#conventions: the same rules hold for `kubectl`
  test("a plan without network access refuses them, and says so", async () => {
    const name = uniqueName("unlisted");
    const spec = {
      type: "http",
      name,
      plan: "basic",
      paymentMode: "hourly",
      exposure: "public",
      image: { url: stack.imageHttp, isPublic: true },
      port: 8080,
      instances: 1,
      storage: { persistent: false, capacity: 1 },
      networkAccess: { ingressWhiteList: [{ cidr: elsewhere }] },
    };
    const body = { apiVersion: "slipway.dev/v1alpha1", kind: "Project", metadata: { name, namespace }, spec };
    await cluster.custom.createNamespacedCustomObject({ ...customObject(name), body });
    made.push(name);
    await eventually(async () => {
      const live = (await cluster.custom.getNamespacedCustomObject(customObject(name))) as {
        status?: { conditions: { type: string; status: string; reason: string }[] };
      };
      expect(live.status?.conditions).toContainEqual(
        expect.objectContaining({ type: "Accepted", status: "False", reason: "FeatureNotInPlan" }),
      );
    });
    await expect(cluster.networking.readNamespacedIngress({ namespace, name })).rejects.toThrow("404");
  });
});
