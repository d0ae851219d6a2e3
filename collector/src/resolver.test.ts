import { KubeClient, type KubernetesObject, type Resource, resources } from "@slipway/controller-runtime";
import { expect, test } from "vitest";
import { FakeApiserver } from "../../test/kit/apiserver/fake-apiserver.ts";
import { eventually } from "../../test/kit/processes/eventually.ts";
import { FakeClock } from "../../test/kit/processes/fake-clock.ts";
import type { AccessLine, Target } from "./access-line.ts";
import { Resolver } from "./resolver.ts";
import { NameTable, normalized, REMEMBERED_MS, routerNames, serviceNames } from "./traefik-names.ts";

test("names are made as Traefik makes them", () => {
  expect(normalized("slipway-org-o1-p1-shop.apps.localhost/")).toBe("slipway-org-o1-p1-shop-apps-localhost");
  expect(normalized("-a--b_c/é1*")).toBe("a-b-c-é1");
  const metadata = { namespace: "slipway-org-o1", name: "p1" };
  expect(serviceNames({ metadata, spec: { ports: [{ name: "http", port: 80 }, { port: 9 }] } })).toEqual([
    "slipway-org-o1/p1",
    "slipway-org-o1-p1-http",
    "slipway-org-o1-p1-80",
    "slipway-org-o1-p1-9",
  ]);
  const rule = (host?: string) => ({ host, http: { paths: [{ path: "/" }, { path: "/a/b" }] } });
  expect(routerNames({ metadata, spec: { rules: [rule("x.example.org"), rule()] } })).toEqual([
    "slipway-org-o1/p1",
    "slipway-org-o1-p1-x-example-org",
    "slipway-org-o1-p1-x-example-org-a-b",
    "slipway-org-o1-p1",
    "slipway-org-o1-p1-a-b",
  ]);
});

test("a name of two projects is neither's, and one of a deleted object is known for a while", () => {
  const table = new NameTable();
  const [a, b] = [
    { organization: "a", project: "b-c" },
    { organization: "a-b", project: "c" },
  ];
  table.set("a/b-c", a, ["a-b-c-http"], 0);
  expect(table.find("a-b-c-http", 1)).toEqual(a);
  table.set("a-b/c", b, ["a-b-c-http"], 2);
  expect(table.find("a-b-c-http", 3)).toBe("ambiguous");
  table.remove("a/b-c", 4);
  expect(table.find("a-b-c-http", 5)).toEqual(b);
  table.set("a-b/c", b, ["other"], 6);
  expect(table.find("a-b-c-http", 7)).toBe("ambiguous");
  expect(table.find("a-b-c-http", REMEMBERED_MS + 6)).toBeUndefined();
  expect(table.find("other", REMEMBERED_MS + 6)).toEqual(b);
});

function child(namespace: string, name: string, project: string, spec: object, organization = "o1") {
  const labels = { "slipway.dev/organization": organization, "slipway.dev/project": project };
  return { metadata: { namespace, name, labels }, spec };
}

const line = (target: Partial<Target>, changes: { peer?: string; userAgent?: string } = {}): AccessLine => ({
  target: { service: "", router: "", entryPoint: "web", ...target },
  peer: changes.peer ?? "10.0.0.1",
  event: {
    at: 0,
    status: 200,
    method: "GET",
    route: "/",
    path: "/",
    userAgent: changes.userAgent ?? "curl",
    sourceIp: "10.0.0.1",
    bytesReceived: 0,
    bytesSent: 0,
    latencyUs: 1,
  },
});

// Shows: docs/analytics.md#other-ingresses: requests are attributed to the project whose Service or
test("requests are the project's whose Service or Ingress the ingress names", async () => {
  const api = await FakeApiserver.start();
  const client = KubeClient.forUrl(api.url);
  const clock = new FakeClock();
  const stop = new AbortController();
  const resolver = new Resolver({ client, clock, systemNamespace: "slipway-system" });
  const put = (resource: Resource, object: KubernetesObject) => client.create(resource, object);
  try {
    const ports = { ports: [{ name: "http", port: 80 }] };
    const rules = { rules: [{ host: "shop.apps.localhost", http: { paths: [{ path: "/" }] } }] };
    await put(resources.services, child("slipway-org-o1", "p1", "p1", ports));
    await put(resources.ingresses, child("slipway-org-o1", "p1", "p1", rules));
    // Says of itself what is not so.
    await put(resources.services, child("default", "slipway-org-o1-p1", "p1", ports));
    await put(resources.pods, {
      metadata: {
        namespace: "slipway-system",
        name: "slipway-operator-1",
        labels: { "app.kubernetes.io/name": "slipway-operator" },
      },
      status: { podIPs: [{ ip: "10.0.0.9" }] },
    } as KubernetesObject);
    const running = resolver.run(stop.signal);
    await eventually("synced", () => resolver.hasSynced);
    const owner = { organization: "o1", project: "p1" };
    const router = "slipway-org-o1-p1-shop-apps-localhost@kubernetes";
    expect(resolver.resolve(line({ service: "slipway-org-o1-p1-http@kubernetes", router }))).toEqual(owner);
    // Refused before it reached the service, on one entry point of several, among routers of one name.
    expect(resolver.resolve(line({ router }))).toEqual(owner);
    expect(resolver.resolve(line({ router: `web-${router}` }))).toEqual(owner);
    const hashed = router.replace("@", "-0123456789abcdef0123@");
    expect(resolver.resolve(line({ router: hashed }))).toEqual(owner);
    // And by the object itself, as other ingresses report it.
    const object = (key: string, kind: "service" | "router" = "router") => line({ object: { kind, key } });
    expect(resolver.resolve(object("slipway-org-o1/p1"))).toEqual(owner);
    expect(resolver.resolve(object("slipway-org-o1/p1", "service"))).toEqual(owner);
    expect(resolver.resolve(object("slipway-org-o1/p2"))).toBe("unknown");
    expect(resolver.resolve(object("default/slipway-org-o1-p1", "service"))).toBe("not_a_project");
    expect(resolver.resolve(line({}))).toBe("no_route");
    expect(resolver.resolve(line({ service: "slipway-system-slipway-api-server-http@kubernetes" }))).toBe(
      "not_a_project",
    );
    expect(resolver.resolve(line({ service: "default-slipway-org-o1-p1-http@kubernetes" }))).toBe(
      "not_a_project",
    );
    expect(resolver.resolve(line({ service: "slipway-org-o1-p1-http@docker" }))).toBe("not_a_project");
    expect(resolver.resolve(line({ service: "slipway-org-o1-p2-http@kubernetes" }))).toBe("unknown");

    const service = "slipway-org-o1-p1-http@kubernetes";
    expect(resolver.resolve(line({ service }, { peer: "10.0.0.9", userAgent: "slipway-probe" }))).toBe(
      "probe",
    );
    // Whoever only calls himself so is counted.
    expect(resolver.resolve(line({ service }, { peer: "10.0.0.8", userAgent: "slipway-probe" }))).toEqual(
      owner,
    );
    expect(resolver.resolve(line({ service }, { peer: "10.0.0.9", userAgent: "curl" }))).toEqual(owner);

    const isKnown = (name: string) =>
      typeof resolver.resolve(line({ service: `slipway-org-o1-${name}-http@kubernetes` })) === "object";
    await put(resources.services, child("slipway-org-o1", "p2", "p2", ports));
    await eventually("the new project", () => isKnown("p2"));
    await client.delete(resources.services, { namespace: "slipway-org-o1", name: "p2" });
    await put(resources.services, child("slipway-org-o1", "p3", "p3", ports));
    await eventually("what was made after the deletion", () => isKnown("p3"));
    expect(resolver.resolve(line({ service: "slipway-org-o1-p2-http@kubernetes" }))).toMatchObject({
      project: "p2",
    });
    stop.abort();
    await running;
  } finally {
    stop.abort();
    await client.close();
    await api.stop();
  }
});
