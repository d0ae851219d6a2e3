import { setTimeout as sleep } from "node:timers/promises";
import { isAlreadyExists, type KubernetesObject, resources } from "@slipway/controller-runtime";
import {
  type CustomDomainStatus,
  challengeName,
  challengeValue,
  type DomainClaim,
  domainClaim,
  PROOF_MISSING_MS,
  type Project,
  UNPROVED_DOMAIN_MS,
} from "@slipway/crds";
import { type Clock, systemClock } from "@slipway/process";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startDnsServer, type TestDnsServer } from "../../../test/kit/operator/dns-server.ts";
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
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { domainClaimResource, projectResource } from "../resources.ts";
import { certificateResource } from "./certificates.ts";
import { customIngressName, tlsSecretName } from "./desired/ingress.ts";
import type { ProbeResult } from "./ingress-probe.ts";

type Ingress = KubernetesObject & { spec: { rules: { host: string }[]; tls?: unknown[] } };

const ALPHA = "slipway-org-alpha";
const BETA = "slipway-org-beta";
const RETRY = { baseMs: 100, maxMs: 300 };

/** Real time, advanced by as much as a test sets; timers stay real. */
const clock: Clock & { aheadMs: number } = {
  ...systemClock,
  aheadMs: 0,
  now: () => new Date(Date.now() + clock.aheadMs),
};

let cluster: TestCluster;
let operator: TestOperator;
let dns: TestDnsServer;
/** First claims of organizations, as the ledger remembers them. */
const reservations = new Map<string, Date>();
/** What the ingress answers for a host, and for every other that an Ingress routes. */
const ingress = new Map<string, ProbeResult>();
let everyHost: ProbeResult = "serving";
/** Hosts for which it never answers. */
const MUTE = "mute-";
async function probe(host: string): Promise<ProbeResult> {
  if (host.startsWith(MUTE)) {
    return new Promise(() => {});
  }
  const routes = await cluster.client.listAll<Ingress>(resources.ingresses);
  const isRouted = routes.some(({ spec }) => spec.rules.some((rule) => rule.host === host));
  return ingress.get(host) ?? (isRouted ? everyHost : "unknown-host");
}

const start = (certificateIssuer?: string, proofRetry?: typeof RETRY) =>
  startOperator(cluster, {
    listOrganizations: async () => ["alpha", "beta"],
    ingressProbe: probe,
    dnsServers: [dns.address],
    ownershipRetry: RETRY,
    proofRetry,
    reservations: {
      firstClaimOf: async ({ organizationId, hostname, claimedAt }) => {
        const key = `${organizationId}/${hostname}`;
        const first = reservations.get(key) ?? claimedAt;
        reservations.set(key, first);
        return first;
      },
      forget: async ({ organizationId, hostname }) => {
        reservations.delete(`${organizationId}/${hostname}`);
      },
    },
    reservedHostnames: ["admin", "status.example.com"],
    certificateIssuer,
    certificatePeriodsMs: { pending_issuance: 100, active: 100 },
    clock,
  });
async function restart(certificateIssuer?: string, proofRetry?: typeof RETRY): Promise<void> {
  await operator.stop();
  operator = await start(certificateIssuer, proofRetry);
}

beforeAll(async () => {
  dns = await startDnsServer();
  cluster = await startCluster();
  operator = await start();
  for (const name of [ALPHA, BETA]) {
    await eventually(() => exists(cluster.client, resources.namespaces, { name }));
  }
});
afterAll(async () => {
  await operator.stop();
  await cluster.stop();
  await dns.stop();
});
beforeEach(() => {
  ingress.clear();
  everyHost = "serving";
  dns.failure = undefined;
});

const ref = (name: string, namespace = ALPHA) => ({ namespace, name });
const get = (name: string, namespace?: string) =>
  cluster.client.get<Project>(projectResource, ref(name, namespace));
const patch = (name: string, spec: object, namespace?: string) =>
  cluster.client.patch<Project>(projectResource, ref(name, namespace), { spec });
const claimOf = (name: string) => cluster.client.getOrUndefined<DomainClaim>(domainClaimResource, { name });
const routeOf = (id: string, host: string, namespace?: string) =>
  cluster.client.getOrUndefined<Ingress>(resources.ingresses, ref(customIngressName(id, host), namespace));
const holderOf = async (host: string) => (await claimOf(host))?.spec.projectRef.name;
const publish = (host: string, organization: string) =>
  dns.records.set(challengeName(host), [[challengeValue(organization, host)]]);

function customOf(project: Project, host: string): CustomDomainStatus | undefined {
  return project.status?.customDomains?.find(({ hostname }) => hostname === host);
}

type WantedStatus = { [Key in keyof CustomDomainStatus]?: CustomDomainStatus[Key] | RegExp };
const domain = (name: string, host: string, want: WantedStatus, namespace?: string) =>
  eventually(async () => {
    const project = await get(name, namespace);
    const found = customOf(project, host);
    const entries = Object.entries(want) as [keyof CustomDomainStatus, unknown][];
    const as = ([key, value]: [keyof CustomDomainStatus, unknown]) =>
      value instanceof RegExp ? value.test(String(found?.[key])) : found?.[key] === value;
    return found && entries.every(as) && found;
  });

const claimSays = (host: string, expected: string) =>
  eventually(async () => {
    const claim = await claimOf(host);
    const conditions = claim?.status?.conditions?.map(
      ({ type, status, reason }) => `${type}=${status}/${reason}`,
    );
    return conditions?.includes(expected) && claim;
  });

const hasCondition = (name: string, expected: string, namespace?: string) =>
  eventually(async () => (await conditionsOf(cluster.client, ref(name, namespace))).includes(expected));

/** Waits until it runs, while every instance of its Deployment serves. */
const served = (name: string, namespace = ALPHA) =>
  whileServed(cluster.client, ref(name, namespace), async () => {
    const project = await get(name, namespace);
    return project.status?.phase === "running" && project;
  });

async function running(
  name: string,
  spec: Partial<Project["spec"]> = {},
  namespace = ALPHA,
): Promise<Project> {
  await cluster.client.create<Project>(projectResource, exampleProject(ref(name, namespace), spec));
  return served(name, namespace);
}

async function remove(name: string, namespace = ALPHA): Promise<void> {
  await cluster.client.delete(projectResource, ref(name, namespace));
  await eventually(async () => !(await cluster.client.getOrUndefined(projectResource, ref(name, namespace))));
}

describe("a custom domain", () => {
  const host = "shop.example.com";

  // Shows: docs/applications.md#project-settings: custom domains: claim, ownership by a TXT record
  test("is pending while its TXT record is missing or wrong, and the project runs meanwhile", async () => {
    const project = await running("shop", { customDomains: [host] });
    const pending = await domain("shop", host, { status: "pending", sslStatus: "disabled" });
    expect(pending.dnsRecords).toEqual([
      { type: "TXT", name: `_slipway-challenge.${host}`, value: challengeValue("alpha", host) },
      { type: "CNAME", name: host, value: project.status?.domain },
    ]);
    await claimSays(host, "Verified=False/TxtRecordMissing");
    publish(host, "beta");
    await claimSays(host, "Verified=False/TxtRecordWrong");
    await hasCondition("shop", "CustomDomainsReady=False/DomainUnverified");
    expect((await get("shop")).status?.phase).toBe("running");
    expect(await routeOf("shop", host)).toBeUndefined();
    const claim = await claimOf(host);
    const createdAt = Date.parse(claim?.metadata.creationTimestamp ?? "");
    expect(Date.parse(claim?.status?.expiresAt ?? "")).toBe(createdAt + UNPROVED_DOMAIN_MS);
    expect(claim?.status?.dnsRecords).toEqual(pending.dnsRecords);
  });

  // Shows: docs/applications.md#project-settings: custom domains: claim, ownership by a TXT record
  test("is proved once the record is right, routed by an Ingress of its own, and active when that answers", async () => {
    ingress.set(host, "unknown-host");
    dns.records.set(challengeName(host), [
      ["v=spf1 -all"],
      [...(challengeValue("alpha", host).match(/.{1,9}/g) ?? [])],
    ]);
    const claim = await claimSays(host, "Verified=True/OwnershipProved");
    expect(claim.status).toMatchObject({ verifiedBy: "txt", verifiedAt: expect.any(String) });
    expect(claim.status?.expiresAt).toBeUndefined();
    const route = await eventually(() => routeOf("shop", host));
    expect(route.spec.rules.map((rule) => rule.host)).toEqual([host]);
    expect(route.spec.tls).toBeUndefined();
    await domain("shop", host, { status: "pending", message: "The ingress does not know the domain yet." });
    await claimSays(host, "Routed=False/RoutePending");
    ingress.delete(host);
    const active = await domain("shop", host, { status: "active", sslStatus: "disabled" });
    expect(active.message).toBeUndefined();
    await hasCondition("shop", "CustomDomainsReady=True/DomainAssigned");
    const ready = await claimSays(host, "Ready=True/Ready");
    expect(ready.status?.conditions?.map(({ type }) => type)).not.toContain("CertificateReady");
  });

  test("stays proved when the record is removed", async () => {
    dns.records.clear();
    const queries = dns.queries.length;
    await restart();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    await domain("shop", host, { status: "active" });
    expect(dns.queries.slice(queries)).toEqual([]);
  });

  test("waits, and harms nobody, while no name server answers", async () => {
    for (const trouble of ["silent", "servfail"] as const) {
      dns.failure = trouble;
      const name = `dark-${trouble}`;
      const slow = Array.from({ length: 20 }, (_, i) => `${trouble}-${i}.example.com`);
      await running(name, { customDomains: slow });
      // The platform's own names need no proof, whatever the others wait for.
      const project = await running(`bright-${trouble}`);
      await claimSays(project.status?.domain ?? "", "Ready=True/Ready");
      dns.failure = "servfail";
      await claimSays(slow[19] ?? "", "Verified=False/LookupFailed");
      dns.failure = undefined;
      publish(slow[0] ?? "", "alpha");
      await domain(name, slow[0] ?? "", { status: "active" });
      await remove(name);
      expect(await claimOf(slow[0] ?? "")).toBeUndefined();
    }
  });

  // Shows: docs/applications.md#administration: `admin domain verify`
  test("is proved by the platform's operator where no record can be looked up", async () => {
    const inside = "shop.corp.internal";
    await patch("shop", { customDomains: [host, inside] });
    await claimSays(inside, "Verified=False/TxtRecordMissing");
    const vouch = { metadata: { annotations: { "slipway.dev/verified-by-operator": "true" } } };
    await cluster.client.patch(domainClaimResource, { name: inside }, vouch);
    const claim = await claimSays(inside, "Verified=True/VouchedByOperator");
    expect(claim.status?.verifiedBy).toBe("operator");
    // Nothing is left of the time without a proof: removed and added again much later, it begins as any other.
    expect(reservations.has(`alpha/${inside}`)).toBe(false);
    await domain("shop", inside, { status: "active" });
    const withdraw = { metadata: { annotations: { "slipway.dev/verified-by-operator": null } } };
    await cluster.client.patch(domainClaimResource, { name: inside }, withdraw);
    await new Promise((resolve) => setTimeout(resolve, 500));
    await domain("shop", inside, { status: "active" });
  });

  test("that is the platform's own is refused, and the others are not", async () => {
    const refused = ["www.apps.test", "apps.test", "status.example.com", "eu.status.example.com"];
    await running("greedy", { customDomains: [...refused, "fine.example.com"] });
    for (const name of refused) {
      await domain("greedy", name, { status: "failed", message: /platform/ as unknown as string });
      expect(await claimOf(name)).toBeUndefined();
    }
    publish("fine.example.com", "alpha");
    await domain("greedy", "fine.example.com", { status: "active" });
    await hasCondition("greedy", "CustomDomainsReady=False/DomainReserved");
    expect((await get("greedy")).status?.phase).toBe("running");
    await remove("greedy");
  });

  test.each(["10.0.0.1", "0x7f.0.0.1", "localhost", "*.example.com"])(
    "%s is no hostname: the schema refuses it",
    async (name) => {
      const project = exampleProject(ref("wrong"), { customDomains: [name] });
      await expect(cluster.client.create<Project>(projectResource, project)).rejects.toMatchObject({
        status: 422,
      });
    },
  );

  // Shows: docs/applications.md#project-settings: custom domains: the list is complete; what is absent
  test("that is removed loses its route first, its claim then, and is free", async () => {
    const route = await routeOf("shop", host);
    await cluster.client.patch(resources.ingresses, ref(route?.metadata?.name ?? ""), {
      metadata: { finalizers: ["test.dev/hold"] },
    });
    await patch("shop", { customDomains: ["shop.corp.internal"] });
    await eventually(async () => (await routeOf("shop", host))?.metadata?.deletionTimestamp);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(await holderOf(host)).toBe("shop");
    // An ingress takes a moment to notice.
    ingress.set(host, "serving");
    await cluster.client.patch(resources.ingresses, ref(route?.metadata?.name ?? ""), {
      metadata: { finalizers: [] },
    });
    await eventually(async () => !(await routeOf("shop", host)));
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(await holderOf(host)).toBe("shop");
    ingress.delete(host);
    await eventually(async () => !(await claimOf(host)));
    expect(customOf(await get("shop"), host)).toBeUndefined();
    await domain("shop", "shop.corp.internal", { status: "active" });
  });
});

describe("a second organization", () => {
  const host = "mine.example.com";

  test("cannot have a domain that the first has only requested", async () => {
    await running("owner", { customDomains: [host] });
    await claimSays(host, "Verified=False/TxtRecordMissing");
    await running("thief", { customDomains: [host, "own.example.org"] }, BETA);
    const failed = await domain("thief", host, { status: "failed", sslStatus: "disabled" }, BETA);
    expect(failed.message).toContain("belongs to another project");
    publish("own.example.org", "beta");
    await domain("thief", "own.example.org", { status: "active" }, BETA);
    expect((await get("thief", BETA)).status?.phase).toBe("running");
    expect(await holderOf(host)).toBe("owner");
  });

  // Shows: docs/applications.md#project-settings: custom domains: another organization cannot take them
  test("cannot have one that is proved, nor with a record or a claim of its own", async () => {
    publish(host, "alpha");
    await domain("owner", host, { status: "active" });
    dns.records.set(challengeName(host), [[challengeValue("beta", host)]]);
    await patch("thief", { restartedAt: "2026-01-01T00:00:00Z" }, BETA);
    const thief = await get("thief", BETA);
    const crafted = domainClaim(thief, { hostname: host, organization: "beta", kind: "custom" });
    await expect(cluster.client.create(domainClaimResource, crafted)).rejects.toSatisfy(isAlreadyExists);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await domain("thief", host, { status: "failed" }, BETA);
    await domain("owner", host, { status: "active" });
    expect(await routeOf("thief", host, BETA)).toBeUndefined();
  });

  test("cannot prove with the first one's record what it claims in that one's name", async () => {
    const target = "public.example.com";
    publish(target, "alpha");
    const thief = await get("thief", BETA);
    const lie = domainClaim(thief, { hostname: target, organization: "alpha", kind: "custom" });
    // Its project, which does not request it yet, would release it otherwise, at times before it was looked up.
    const reservedFor = { generation: 9_999, at: new Date().toISOString() };
    await cluster.client.create(domainClaimResource, { ...lie, spec: { ...lie.spec, reservedFor } });
    await claimSays(target, "Verified=False/TxtRecordWrong");
    await patch("thief", { customDomains: [host, target] }, BETA);
    await domain("thief", target, { status: "pending" }, BETA);
    expect(await routeOf("thief", target, BETA)).toBeUndefined();
    // Called a name of the zone, it needs a proof all the same.
    const posing = domainClaim(thief, {
      hostname: "posing.example.com",
      organization: "beta",
      kind: "default",
    });
    await cluster.client.create(domainClaimResource, { ...posing, spec: { ...posing.spec, reservedFor } });
    await claimSays("posing.example.com", "Verified=False/TxtRecordMissing");
    await cluster.client.delete(domainClaimResource, { name: "posing.example.com" });
  });

  test("has it once the first releases it, and then has to prove it itself", async () => {
    await patch("owner", { customDomains: [] });
    await eventually(async () => (await holderOf(host)) === "thief");
    await domain("thief", host, { status: "active" }, BETA);
    publish(host, "alpha");
    await patch("owner", { customDomains: [host] });
    await domain("owner", host, { status: "failed" });
    await remove("thief", BETA);
    await domain("owner", host, { status: "active" });
  });
});

// Shows: docs/applications.md#create: `config.custom_domains`: up to 20, all claimed or none
test("20 custom domains are proved and routed concurrently, and are deleted with their project, certificates too", async () => {
  const hosts = Array.from({ length: 20 }, (_, i) => `many-${i}.example.com`);
  for (const host of hosts) {
    publish(host, "alpha");
  }
  await running("many", { customDomains: hosts });
  for (const host of hosts) {
    await domain("many", host, { status: "active" });
  }
  await hasCondition("many", "CustomDomainsReady=True/DomainAssigned");
  await cluster.client.create<KubernetesObject>(resources.secrets, {
    metadata: { ...ref(tlsSecretName("many", hosts[0] ?? "")), labels: { "slipway.dev/project": "many" } },
  });
  await remove("many");
  const labelSelector = "slipway.dev/project=many";
  for (const resource of [resources.ingresses, resources.secrets, domainClaimResource]) {
    expect(await cluster.client.listAll(resource, { labelSelector }), resource.kind).toEqual([]);
  }
});

describe("exposure", () => {
  const host = "open.example.com";

  // Shows: docs/applications.md#project-settings: exposure: private removes route, subdomain and custom
  test("to private: all routes go, then all claims, whatever else is wrong with the project", async () => {
    publish(host, "alpha");
    const before = await running("open", { subdomain: "open-shop", customDomains: [host] });
    expect(before.status?.exposure).toEqual({ current: "public" });
    await domain("open", host, { status: "active" });
    const hold = { metadata: { finalizers: ["test.dev/hold"] } };
    await cluster.client.patch(resources.ingresses, ref("open"), hold);
    // A plan that does not exist: the project is not accepted any more.
    await patch("open", { exposure: "private", subdomain: null, customDomains: [], plan: "imaginary" });
    await hasCondition("open", "Accepted=False/UnknownPlan");
    await eventually(async () => !(await routeOf("open", host)));
    expect((await get("open")).status?.exposure).toEqual({ current: "public", changing: true });
    await patch("open", { plan: "basic" });
    await eventually(async () => !(await claimOf(host)));
    expect(await holderOf("open-shop.apps.test")).toBe("open");
    expect((await get("open")).status?.exposure).toEqual({ current: "public", changing: true });
    await cluster.client.patch(resources.ingresses, ref("open"), { metadata: { finalizers: [] } });
    await eventually(async () => !(await claimOf("open-shop.apps.test")));
    const after = await eventually(async () => {
      const project = await get("open");
      return project.status?.exposure?.current === "private" && project;
    });
    expect(after.status?.exposure).toEqual({ current: "private" });
    expect(after.status?.domain).toBeUndefined();
    expect(after.status?.customDomains).toBeUndefined();
  });

  // Shows: docs/applications.md#states: exposure change | a second one while one is in progress is 409
  test("back to public: a default domain again, and changing until the ingress answers", async () => {
    const name = (await get("open")).spec.name;
    await served("open");
    everyHost = "no-instance";
    await patch("open", { exposure: "public" });
    const changing = await eventually(async () => {
      const project = await get("open");
      return project.status?.domain !== undefined && project;
    });
    expect(changing.status?.exposure).toEqual({ current: "private", changing: true });
    everyHost = "serving";
    const after = await eventually(async () => {
      const project = await get("open");
      return project.status?.exposure?.current === "public" && project;
    });
    expect(after.status?.exposure).toEqual({ current: "public" });
    expect(after.status?.domain).toMatch(new RegExp(`^${name}-[0-9a-f]{8}\\.apps\\.test$`));
  });
});

describe("the default domain", () => {
  // Shows: docs/applications.md#project-settings: name: 6 to 32; the domain stays when it changes
  test("survives a new name, and is found by its project's wish", async () => {
    const before = (await running("named")).status?.domain;
    await patch("named", { name: "another" });
    await eventually(async () => (await get("named")).status?.observedGeneration === 2);
    expect((await get("named")).status?.domain).toBe(before);
    await cluster.client.delete(domainClaimResource, { name: before ?? "" });
    await eventually(async () => (await holderOf(before ?? "")) === "named");
  });

  test("changes to a subdomain whose route answers before the old one is free", async () => {
    const before = (await get("named")).status?.domain ?? "";
    ingress.set("chosen.apps.test", "no-instance");
    await patch("named", { subdomain: "chosen" });
    await hasCondition("named", "DomainReady=False/DomainPending");
    expect(await holderOf("chosen.apps.test")).toBe("named");
    expect(await holderOf(before)).toBe("named");
    ingress.clear();
    await eventually(async () => !(await claimOf(before)));
    await hasCondition("named", "DomainReady=True/DomainAssigned");
    expect((await get("named")).status?.domain).toBe("chosen.apps.test");
  });

  test("is free after a few seconds, too, when the new route does not answer", async () => {
    ingress.set("slow.apps.test", "no-instance");
    const started = performance.now();
    await patch("named", { subdomain: "slow" });
    await hasCondition("named", "DomainReady=False/DomainPending");
    await eventually(async () => !(await claimOf("chosen.apps.test")));
    expect(performance.now() - started).toBeGreaterThan(3_900);
    ingress.clear();
    await hasCondition("named", "DomainReady=True/DomainAssigned");
  });

  test.each([
    ["taken", "DomainTaken", "other-shop"],
    ["reserved", "DomainReserved", "admin"],
  ])("stays when the requested subdomain is %s", async (_, reason, subdomain) => {
    if (reason === "DomainTaken") {
      await running("other", { subdomain });
    }
    await patch("named", { subdomain });
    await hasCondition("named", `DomainReady=False/${reason}`);
    const project = await eventually(async () => {
      const live = await get("named");
      return live.status?.observedGeneration === live.metadata.generation && live;
    });
    expect(project.status).toMatchObject({ phase: "failing", domain: "slow.apps.test" });
    const route = await cluster.client.get<Ingress>(resources.ingresses, ref("named"));
    expect(route.spec.rules[0]?.host).toBe("slow.apps.test");
    await patch("named", { subdomain: "slow" });
    await hasCondition("named", "DomainReady=True/DomainAssigned");
  });

  test("that is claimed ahead of the spec is not released for a minute", async () => {
    const project = await get("named");
    const generation = project.metadata.generation ?? 0;
    const ahead = (hostname: string, forGeneration: number) => {
      const claim = domainClaim(project, { hostname, organization: "alpha", kind: "subdomain" });
      const reservedFor = { generation: forGeneration, at: new Date().toISOString() };
      return cluster.client.create(domainClaimResource, { ...claim, spec: { ...claim.spec, reservedFor } });
    };
    await ahead("soon.apps.test", generation + 1);
    await ahead("late.apps.test", generation);
    await eventually(async () => !(await claimOf("late.apps.test")));
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(await holderOf("soon.apps.test")).toBe("named");
    clock.aheadMs += 61_000;
    await cluster.client.patch(projectResource, ref("named"), { metadata: { labels: { touched: "yes" } } });
    await eventually(async () => !(await claimOf("soon.apps.test")));
    expect(await holderOf("slow.apps.test")).toBe("named");
  });
});

describe("a domain that nobody proves for seven days", () => {
  const host = "abandoned.example.com";
  const touch = (claim: string) =>
    cluster.client.patch(domainClaimResource, { name: claim }, { metadata: { labels: { touched: "yes" } } });

  // Shows: docs/applications.md#project-settings: custom domains: one whose ownership is not proved is
  test("expires: its claim is deleted, and it is not claimed again automatically", async () => {
    const project = await running("idle", { customDomains: [host, "kept.example.com"] });
    publish("kept.example.com", "alpha");
    await domain("idle", "kept.example.com", { status: "active" });
    await claimSays(host, "Verified=False/TxtRecordMissing");
    clock.aheadMs += UNPROVED_DOMAIN_MS;
    await touch(host);
    await eventually(async () => !(await claimOf(host)));
    const expired = await domain("idle", host, { status: "failed" });
    expect(expired.message).toContain("expired");
    expect(expired.expiredAt).toBeDefined();
    await hasCondition("idle", "CustomDomainsReady=False/DomainExpired");

    publish(host, "alpha");
    await restart();
    await patch("idle", { restartedAt: "2026-01-01T00:00:00Z" });
    await eventually(async () => (await get("idle")).status?.observedGeneration === 2);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(await claimOf(host)).toBeUndefined();
    await domain("idle", host, { status: "failed", expiredAt: expired.expiredAt });
    await domain("idle", "kept.example.com", { status: "active" });
    expect(await holderOf(project.status?.domain ?? "")).toBe("idle");
  });

  // Shows: docs/resources/domainclaim.md#domainclaim: A failed lookup releases no claim, however late it is
  test("is not released while no name server answers: that proves nothing", async () => {
    clock.aheadMs = 0;
    const [proved, unproved] = ["late.example.com", "never.example.com"] as const;
    await running("patient", { customDomains: [proved, unproved] });
    for (const name of [proved, unproved]) {
      await claimSays(name, "Verified=False/TxtRecordMissing");
    }
    dns.failure = "servfail";
    for (const name of [proved, unproved]) {
      await claimSays(name, "Verified=False/LookupFailed");
    }
    publish(proved, "alpha");
    clock.aheadMs += UNPROVED_DOMAIN_MS;
    for (const name of [proved, unproved]) {
      await touch(name);
    }
    const queries = dns.queries.length;
    await eventually(async () => dns.queries.length > queries + 6);
    for (const name of [proved, unproved]) {
      await claimSays(name, "Verified=False/LookupFailed");
    }

    dns.failure = undefined;
    await domain("patient", proved, { status: "active" });
    await domain("patient", unproved, { status: "failed", message: /expired/ });
    clock.aheadMs = 0;
  });

  test("can be claimed by another project meanwhile, or again once it was removed and added", async () => {
    clock.aheadMs = 0;
    await patch("idle", { customDomains: ["kept.example.com"] });
    await eventually(async () => customOf(await get("idle"), host) === undefined);
    await patch("idle", { customDomains: [host, "kept.example.com"] });
    await domain("idle", host, { status: "active" });
  });
});

test("projects whose routes never answer hold up nobody else's, nor their own deletion for long", async () => {
  const names = Array.from({ length: 12 }, (_, i) => `${MUTE}${i}`);
  for (const name of names) {
    const project = exampleProject(ref(name, BETA), { subdomain: name });
    await cluster.client.create<Project>(projectResource, project);
  }
  for (const name of names) {
    await eventually(() => exists(cluster.client, resources.deployments, ref(name, BETA)));
    await serveDeployment(cluster.client, ref(name, BETA));
  }
  for (const name of names) {
    await hasCondition(name, "Ready=False/DomainPending", BETA);
  }
  const started = performance.now();
  const project = await running("unharmed");
  await patch("unharmed", { subdomain: "unharmed-shop" });
  await eventually(async () => !(await claimOf(project.status?.domain ?? "")));
  expect(performance.now() - started).toBeLessThan(5_000);
  await remove("unharmed");
  await Promise.all(names.map((name) => remove(name, BETA)));
});

describe("deletion", () => {
  const host = "leaving.apps.test";
  /** How long a hostname is kept, at most, whose deleted route the ingress may not have noticed. */
  const KEPT_MS = 5_000;
  /** @returns when the deletion began */
  const leave = async () => {
    await running("leaving", { subdomain: "leaving" });
    ingress.set(host, "serving");
    const started = performance.now();
    await cluster.client.delete(projectResource, ref("leaving"));
    await eventually(async () => !(await exists(cluster.client, resources.ingresses, ref("leaving"))));
    return started;
  };

  test("releases a hostname once the ingress has noticed that its route is deleted", async () => {
    const started = await leave();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(await holderOf(host)).toBe("leaving");
    expect(await exists(cluster.client, resources.deployments, ref("leaving"))).toBe(true);
    ingress.delete(host);
    await eventually(async () => !(await claimOf(host)));
    expect(performance.now() - started).toBeLessThan(KEPT_MS);
    await eventually(async () => !(await cluster.client.getOrUndefined(projectResource, ref("leaving"))));
  });

  test("frees it after five seconds, too, when the ingress never does", async () => {
    const started = await leave();
    await eventually(async () => !(await claimOf(host)), 8_000);
    expect(performance.now() - started).toBeGreaterThanOrEqual(KEPT_MS);
    await eventually(async () => !(await cluster.client.getOrUndefined(projectResource, ref("leaving"))));
  });
});

describe("certificates", () => {
  const host = "safe.example.com";
  afterAll(() => restart());

  /** No cert-manager runs here: the test plays its part and writes the Secret with the labels of the annotations. */
  // Shows: docs/applications.md#project-settings: custom domains: claim, ownership by a TXT record
  test("are requested, waited for and reported", async () => {
    await restart("letsencrypt");
    await running("safe", { customDomains: [host] });
    await domain("safe", host, { status: "pending", sslStatus: "pending_validation" });
    publish(host, "alpha");
    await domain("safe", host, { status: "active", sslStatus: "pending_issuance" });
    await hasCondition("safe", "CustomDomainsReady=False/CertificatePending");
    await claimSays(host, "CertificateReady=False/CertificatePending");
    await claimSays(host, "Ready=False/CertificatePending");

    const route = await routeOf("safe", host);
    const secretName = tlsSecretName("safe", host);
    expect(route?.spec.tls).toEqual([{ hosts: [host], secretName }]);
    const annotations = route?.metadata?.annotations ?? {};
    expect(annotations["cert-manager.io/cluster-issuer"]).toBe("letsencrypt");
    const { labels } = JSON.parse(annotations["cert-manager.io/secret-template"] ?? "") as {
      labels: Record<string, string>;
    };
    await cluster.client.create<KubernetesObject>(resources.secrets, {
      metadata: { ...ref(secretName), labels },
    });
    await domain("safe", host, { status: "active", sslStatus: "active" });
    await hasCondition("safe", "CustomDomainsReady=True/DomainAssigned");
    await claimSays(host, "CertificateReady=True/CertificateIssued");
    await claimSays(host, "Ready=True/Ready");
  });

  // Shows: docs/webhooks.md#events: `certificate.failed` | a certificate
  test("that fail are reported once, however often they are retried, until they are issued", async () => {
    const failing = "failing.example.com";
    await cluster.client.create(resources.customResourceDefinitions, certificateDefinition);
    await running("unsafe", { customDomains: [failing] });
    publish(failing, "alpha");
    await claimSays(failing, "CertificateReady=False/CertificatePending");
    // Nothing else of it changes from here on.
    await claimSays(failing, "Routed=True/Routed");
    const certificate = ref(tlsSecretName("unsafe", failing));
    const report = (lastFailureTime: string | null, message: string) =>
      cluster.client.patch(
        certificateResource,
        certificate,
        { status: { lastFailureTime, conditions: [{ type: "Issuing", status: "False", message }] } },
        { subresource: "status", fieldManager: "cert-manager" },
      );
    await eventually(() =>
      cluster.client.create<KubernetesObject>(certificateResource, {
        apiVersion: "cert-manager.io/v1",
        kind: "Certificate",
        metadata: certificate,
      }),
    );
    await report("2026-11-21T12:00:00Z", "no authorization");
    await claimSays(failing, "CertificateReady=False/CertificateFailed");
    const first = await claimOf(failing);
    expect(first?.status?.certificateFailure).toEqual({
      since: "2026-11-21T12:00:00.000Z",
      message: "no authorization",
    });
    await report("2026-11-21T13:00:00Z", "still none");
    // Several reads later.
    await sleep(1_000);
    expect((await claimOf(failing))?.metadata.resourceVersion).toBe(first?.metadata.resourceVersion);

    await report(null, "issued");
    await cluster.client.create<KubernetesObject>(resources.secrets, {
      metadata: { ...certificate, labels: (await routeOf("unsafe", failing))?.metadata?.labels },
    });
    await claimSays(failing, "CertificateReady=True/CertificateIssued");
    await eventually(async () => (await claimOf(failing))?.status?.certificateFailure === undefined);
    // A renewal that fails leaves the certificate in place.
    await report("2026-12-21T12:00:00Z", "no authorization any more");
    await eventually(
      async () => (await claimOf(failing))?.status?.certificateFailure?.since === "2026-12-21T12:00:00.000Z",
    );
    await claimSays(failing, "CertificateReady=True/CertificateIssued");
    await remove("unsafe");
  });

  test("go with their domain", async () => {
    await patch("safe", { customDomains: [] });
    await eventually(async () => !(await claimOf(host)));
    await eventually(
      async () => !(await exists(cluster.client, resources.secrets, ref(tlsSecretName("safe", host)))),
    );
    expect(await routeOf("safe", host)).toBeUndefined();
  });
});

test("an unchanged platform writes nothing and looks nothing up, with domains in every state", async () => {
  publish("calm.example.com", "alpha");
  await running("calm", { customDomains: ["calm.example.com", "in.apps.test", "mine.example.com"] });
  await domain("calm", "calm.example.com", { status: "active" });
  await domain("calm", "mine.example.com", { status: "failed" });
  for (const name of ["open", "idle"]) {
    await served(name);
  }
  const before = await untilUnchanged(cluster, () => dns.queries.length);
  const queries = dns.queries.length;
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  await restart();
  await new Promise((resolve) => setTimeout(resolve, 4_000));
  expect((await cluster.operatorWrites()).slice(before)).toEqual([]);
  expect(dns.queries.slice(queries)).toEqual([]);
});

describe("the organization that proves a domain has it", () => {
  // Shows: docs/applications.md#project-settings: custom domains: proved ownership takes precedence over
  test("from an earlier claim without a proof, which is replaced", async () => {
    const host = "squatted.example.com";
    await running("squatter", { customDomains: [host] });
    await claimSays(host, "Verified=False/TxtRecordMissing");
    await running("owner", { customDomains: [host] }, BETA);
    await domain("owner", host, { status: "failed", message: /belongs to another/ }, BETA);
    publish(host, "beta");
    await domain("owner", host, { status: "active" }, BETA);
    expect(await holderOf(host)).toBe("owner");
    await domain("squatter", host, { status: "failed", message: /another organization/ });
  });

  // Shows: docs/applications.md#project-settings: custom domains: proved ownership takes precedence over
  test("a removed proof is reported, and replaced by another organization's", async () => {
    const host = "sold.example.com";
    await restart(undefined, RETRY);
    publish(host, "alpha");
    await running("seller", { customDomains: [host] });
    await domain("seller", host, { status: "active" });
    dns.records.delete(challengeName(host));
    const missing = await eventually(async () => {
      const claim = await claimOf(host);
      return claim?.status?.proofMissingSince !== undefined && claim;
    });
    expect(missing.status?.verifiedBy).toBe("txt");
    await domain("seller", host, { status: "active" });
    clock.aheadMs += PROOF_MISSING_MS;
    await claimSays(host, "Verified=True/ProofMissing");
    await domain("seller", host, { status: "active" });
    publish(host, "alpha");
    const found = await claimSays(host, "Verified=True/OwnershipProved");
    expect(found.status?.proofMissingSince).toBeUndefined();

    await running("buyer", { customDomains: [host] }, BETA);
    publish(host, "beta");
    await domain("buyer", host, { status: "active" }, BETA);
    expect(await routeOf("seller", host)).toBeUndefined();
    clock.aheadMs = 0;
    await restart();
  });

  // Shows: docs/applications.md#project-settings: custom domains: removed and added again, a reservation
  test("a reservation counts from the first claim, however often it was removed and added again", async () => {
    const host = "hoarded.example.com";
    await running("hoarder", { customDomains: [host] });
    const first = await claimSays(host, "Verified=False/TxtRecordMissing");
    await patch("hoarder", { customDomains: [] });
    await eventually(async () => !(await claimOf(host)));
    await patch("hoarder", { customDomains: [host] });
    const again = await claimSays(host, "Verified=False/TxtRecordMissing");
    expect(again.metadata.uid).not.toBe(first.metadata.uid);
    expect(again.status?.expiresAt).toBe(first.status?.expiresAt);
    await patch("hoarder", { customDomains: [] });
    await eventually(async () => !(await claimOf(host)));
    clock.aheadMs += UNPROVED_DOMAIN_MS;
    await patch("hoarder", { customDomains: [host] });
    await domain("hoarder", host, { status: "failed", message: /expired/ });
    await eventually(async () => !(await claimOf(host)));
    // Proved meanwhile, it is verified immediately.
    publish(host, "alpha");
    await patch("hoarder", { customDomains: [] });
    await eventually(async () => customOf(await get("hoarder"), host) === undefined);
    await patch("hoarder", { customDomains: [host] });
    await domain("hoarder", host, { status: "active" });
    clock.aheadMs = 0;
  });
});

/** cert-manager's kind, as far as it is read here. */
const certificateDefinition: KubernetesObject & { spec: object } = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "certificates.cert-manager.io" },
  spec: {
    group: "cert-manager.io",
    scope: "Namespaced",
    names: { kind: "Certificate", plural: "certificates", singular: "certificate" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: { status: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
          },
        },
      },
    ],
  },
};
