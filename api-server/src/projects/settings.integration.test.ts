import { KubeClient } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { labels, organizationNamespace, type Project } from "@slipway/crds";
import { connectLedger, insertOrganization, type Ledger, migrateToLatest } from "@slipway/ledger";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { TestApiserver } from "../../../hack/cluster/apiserver.ts";
import { exampleBody, type Harness, startHarness, ZONE } from "../../../test/kit/api-server/harness.ts";
import { startReleaser } from "../../../test/kit/api-server/releaser.ts";
import { bindInOrganization, createRoles, restrictedClient } from "../../../test/kit/api-server/roles.ts";
import { acquireApiserver } from "../../../test/kit/clusters/shared-apiserver.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import { domainClaimResource, projectResource } from "../resources.ts";
import type { ApiProject } from "./api-project.ts";
import { changeProject } from "./change.ts";
import { readClaim } from "./claims.ts";

/**
 * Changes, custom domains and deletions through two replicas, over a real kube-apiserver with the real CRDs and a real
 * PostgreSQL. No operator runs; claims are released as by one.
 */

const ORGANIZATION = "acme";
const POLL = { timeout: 10_000 };

let apiserver: TestApiserver;
let postgres: TestPostgres;
let ledger: Ledger;
let admin: KubeClient;
let replicas: Harness[];
let headers: Record<string, string>[];
let releaser: { stop: () => Promise<void> };

beforeAll(async () => {
  [apiserver, postgres] = await Promise.all([acquireApiserver(), startPostgres()]);
  ledger = connectLedger({ url: postgres.url, applicationName: "test", maxConnections: 20 });
  await migrateToLatest(ledger);
  admin = KubeClient.fromConfig(loadKubeConfig({ file: apiserver.kubeconfig }));
  await createRoles(admin);
  const start = () => startHarness(restrictedClient(apiserver.kubeconfig), { ledger, admin });
  replicas = [await start(), await start()];
  await insertOrganization(ledger, { id: ORGANIZATION, name: ORGANIZATION });
  await replicas[0]?.namespace(ORGANIZATION);
  await bindInOrganization(admin, ORGANIZATION);
  headers = replicas.map((replica) => replica.key(ORGANIZATION, "* on organization:*", "* on project:*"));
  releaser = startReleaser(admin);
});

afterAll(async () => {
  await releaser?.stop();
  for (const replica of replicas ?? []) {
    await replica.close();
  }
  await admin?.close();
  await ledger?.destroy();
  await postgres?.stop();
  await apiserver?.stop();
});

type Method = "GET" | "POST" | "PATCH" | "DELETE";
/** Sends to one of the two replicas. */
const send = (replica: number, method: Method, path: string, payload?: object) =>
  (replicas[replica % 2] as Harness).app.inject({
    method,
    url: `/v1/project${path}`,
    headers: headers[replica % 2] ?? {},
    ...(payload === undefined ? {} : { payload }),
  });
const create = (config: Record<string, unknown> = {}, replica = 0) =>
  send(replica, "POST", "", exampleBody({ plan: "basic" }, config));
const make = async (config: Record<string, unknown> = {}): Promise<string> => {
  const created = await create(config);
  expect(created.json()).toMatchObject({ status: "success" });
  return created.json().data.project_id;
};
const ref = (name: string) => ({ namespace: organizationNamespace(ORGANIZATION), name });
const live = (id: string) => admin.get<Project>(projectResource, ref(id));
const read = async (id: string, replica = 0) => (await send(replica, "GET", `/${id}`)).json().data;
const holder = async (hostname: string) => (await readClaim(admin, hostname))?.spec.projectRef.name;
const claimsOf = async (id: string) =>
  (await admin.listAll(domainClaimResource, { labelSelector: `${labels.project}=${id}` })).map(
    ({ metadata }) => metadata?.name,
  );
const statuses = (answers: { statusCode: number }[]) => answers.map(({ statusCode }) => statusCode).sort();

describe("changes", () => {
  // Shows: docs/applications.md#project-settings: concurrent changes lose nothing
  it("loses none of 50 concurrent ones through two replicas", async () => {
    const id = await make();
    await expect
      .poll(() => replicas[1]?.projects.list(ORGANIZATION).some((one) => one.id === id), POLL)
      .toBe(true);
    const letters = Array.from({ length: 50 }, (_, index) => String.fromCharCode(0x4e00 + index));
    await Promise.all(
      letters.map(async (letter, index) => {
        const { services } = replicas[index % 2] as Harness;
        const project = (await services.projects.find(ORGANIZATION, id)) as ApiProject;
        await changeProject(project, services, (spec) => ({
          ...spec,
          description: `${spec.description ?? ""}${letter}`,
        }));
      }),
    );
    expect([...((await live(id)).spec.description ?? "")].sort()).toEqual(letters);
  });

  // Shows: docs/applications.md#project-settings: concurrent changes lose nothing
  it("answers 50 concurrent mixed PATCHes without a failure, and ends with one value of each", async () => {
    const id = await make();
    const sent = Array.from({ length: 50 }, (_, index): [string, Record<string, string>] => {
      if (index % 3 === 0) {
        return ["name", { name: `renamed-${index}` }];
      }
      if (index % 3 === 1) {
        return ["description", { description: `words ${index}` }];
      }
      return ["domain", { domain: `mixed-${index}` }];
    });
    const answers = await Promise.all(
      sent.map(([route, body], index) => send(index, "PATCH", `/${id}/${route}`, body)),
    );
    expect(answers.map((answer) => answer.json().code).filter((code) => code !== undefined)).toEqual([]);
    const { spec } = await live(id);
    const wanted = sent.flatMap(([, body]) => Object.values(body));
    expect(wanted).toEqual(expect.arrayContaining([spec.name, spec.description, spec.subdomain]));
    await expect.poll(() => claimsOf(id), POLL).toEqual([`${spec.subdomain}.${ZONE}`]);
  });

  // Shows: docs/applications.md#fields-of-answers: single project | `updated_at` changes with every
  it("keep what others set, and what others set later counts as a change too", async () => {
    const id = await make();
    await admin.patch(projectResource, ref(id), {
      metadata: { labels: { team: "blue" }, annotations: { note: "kept" } },
      spec: { healthcheck: { enabled: true, path: "/ready" } },
    });
    await send(0, "PATCH", `/${id}/name`, { name: "renamed-shop" });
    const project = await live(id);
    expect(project.metadata.labels?.team).toBe("blue");
    expect(project.metadata.annotations?.note).toBe("kept");
    expect(project.spec).toMatchObject({ name: "renamed-shop", healthcheck: { path: "/ready" } });
    const { updated_at: before } = await read(id);
    await expect
      .poll(
        async () => {
          await admin.patch(projectResource, ref(id), { spec: { description: `at ${Date.now()}` } });
          return (await read(id)).updated_at > before;
        },
        { timeout: 5_000, interval: 300 },
      )
      .toBe(true);
  });

  // Shows: docs/applications.md#fields-of-answers: single project | `updated_at` changes with every
  it("move updated_at, also when something is only removed", async () => {
    const id = await make({ custom_domains: ["removed.example.com"] });
    const { updated_at: before } = await read(id);
    await send(0, "PATCH", `/${id}/custom-domains`, { custom_domains: [] });
    expect((await read(id)).updated_at > before).toBe(true);
  });

  // Shows: docs/applications.md#project-settings: 3. the subdomain exactly as requested; in use: 409
  it("give a subdomain to exactly one of two projects, ten times over", async () => {
    const ids = [await make(), await make()];
    for (let round = 0; round < 10; round += 1) {
      const domain = `round-${round}`;
      const answers = await Promise.all(
        ids.map((id, index) => send(index, "PATCH", `/${id}/domain`, { domain })),
      );
      expect(statuses(answers)).toEqual([200, 409]);
      const winner = ids[answers.findIndex(({ statusCode }) => statusCode === 200)];
      expect(await holder(`${domain}.${ZONE}`)).toBe(winner);
    }
  });
});

describe("custom domains at creation", () => {
  // Shows: docs/applications.md#create: `config.custom_domains`: up to 20, all claimed or none
  it("are claimed, all twenty of them", async () => {
    const custom_domains = Array.from({ length: 20 }, (_, index) => `d${index}.twenty.example.com`);
    const id = await make({ custom_domains });
    expect((await claimsOf(id)).sort()).toEqual([(await read(id)).domain, ...custom_domains].sort());
    // The operator was kept waiting until then, and no longer.
    expect((await live(id)).metadata.annotations).toBeUndefined();
    expect((await read(id)).custom_domain_setup).toHaveLength(20);
    const more = [...custom_domains, "d20.twenty.example.com"];
    expect((await create({ custom_domains: more })).statusCode).toBe(400);
  });

  // Shows: docs/applications.md#create: `config.custom_domains`: up to 20, all claimed or none
  // Shows: docs/applications.md#errors-project-creation: 409 | domain unavailable: `DOMAIN_UNAVAILABLE`
  it("are refused when one is taken, which is named, and nothing is left behind", async () => {
    await make({ custom_domains: ["m.taken.example.com"] });
    const known = replicas[0]?.projects.list(ORGANIZATION).length;
    const custom_domains = ["a.taken.example.com", "m.taken.example.com", "z.taken.example.com"];
    const refused = await create({ custom_domains });
    expect(refused.json()).toMatchObject({ code: "DOMAIN_UNAVAILABLE", hostname: "m.taken.example.com" });
    expect(refused.statusCode).toBe(409);
    expect(await holder("a.taken.example.com")).toBeUndefined();
    expect(replicas[0]?.projects.list(ORGANIZATION)).toHaveLength(known ?? 0);
  });

  it("go to exactly one of ten concurrent creations, with nothing left of the others", async () => {
    const custom_domains = ["x.contested.example.com", "y.contested.example.com"];
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => create({ custom_domains }, index)),
    );
    expect(statuses(answers)).toEqual([201, ...Array(9).fill(409)]);
    const id = answers.find(({ statusCode }) => statusCode === 201)?.json().data.project_id;
    expect(await Promise.all(custom_domains.map(holder))).toEqual([id, id]);
  });

  // Shows: docs/applications.md#create: `config.subdomain`: reserved exactly as given
  // Shows: docs/applications.md#errors-project-creation: 400 | `DOMAIN_RESERVED`: custom domains of the
  it("and subdomains that are the platform's own are refused", async () => {
    const reserved = await create({ custom_domains: ["fine.example.com", `shop.${ZONE}`] });
    expect(reserved.json()).toMatchObject({
      code: "DOMAIN_RESERVED",
      errors: [{ field: "config.custom_domains[1]" }],
    });
    expect(reserved.statusCode).toBe(400);
    const api = await create({ subdomain: "api" });
    expect(api.json()).toMatchObject({ code: "DOMAIN_UNAVAILABLE" });
    expect(api.statusCode).toBe(409);
  });
});

describe("DELETE", () => {
  // Shows: docs/applications.md#delete: 200 means that name and domains are free
  it("frees every domain", async () => {
    const id = await make({ subdomain: "whole-shop", custom_domains: ["whole.example.com"] });
    expect(await claimsOf(id)).toHaveLength(2);
    expect((await send(0, "DELETE", `/${id}`)).statusCode).toBe(200);
    expect(await claimsOf(id)).toEqual([]);
    const next = await create({ subdomain: "whole-shop", custom_domains: ["whole.example.com"] }, 1);
    expect(next.statusCode).toBe(201);
  });

  // Shows: docs/applications.md#delete: a second deletion is 409, also through the other replica
  // Shows: docs/applications.md#errors-project-deletion: 409 | `PROJECT_ALREADY_DELETED`
  it("through two replicas concurrently is done once; both then answer 404 to reads and 409 to a repeat", async () => {
    for (let round = 0; round < 5; round += 1) {
      const id = await make();
      await admin.patch(projectResource, ref(id), { metadata: { finalizers: ["slipway.dev/project"] } });
      const deletions = [0, 1, 0, 1].map((replica) => send(replica, "DELETE", `/${id}`));
      await expect.poll(async () => (await live(id)).metadata.deletionTimestamp, POLL).toBeDefined();
      // A change comes too late.
      const renamed = await send(0, "PATCH", `/${id}/name`, { name: "renamed-shop" });
      expect(renamed.json()).toMatchObject({ code: "PROJECT_ALREADY_DELETED" });
      await admin.patch(projectResource, ref(id), { metadata: { finalizers: [] } });
      expect(statuses(await Promise.all(deletions))).toEqual([200, 409, 409, 409]);
      for (const replica of [0, 1]) {
        await expect
          .poll(async () => (await send(replica, "GET", `/${id}`)).json().code, POLL)
          .toBe("PROJECT_NOT_FOUND");
        const again = await send(replica, "DELETE", `/${id}`);
        expect(again.json()).toMatchObject({ code: "PROJECT_ALREADY_DELETED" });
      }
    }
  });

  // Shows: docs/applications.md#delete: a request after 503 continues the deletion
  it("tried again after 503 continues what was begun, and answers 200", async () => {
    const id = await make();
    await admin.patch(projectResource, ref(id), { metadata: { finalizers: ["slipway.dev/project"] } });
    const { app, services } = replicas[0] as Harness;
    await admin.delete(projectResource, ref(id));
    const real = services.now;
    // The first call was abandoned long ago.
    services.now = () => new Date(real().getTime() + 60_000);
    try {
      const waiting = vi.spyOn(services.projects, "waitForDeletion");
      const again = app.inject({ method: "DELETE", url: `/v1/project/${id}`, headers: headers[0] ?? {} });
      await expect.poll(() => waiting.mock.calls.length, POLL).toBe(1);
      await admin.patch(projectResource, ref(id), { metadata: { finalizers: [] } });
      expect((await again).statusCode).toBe(200);
    } finally {
      vi.restoreAllMocks();
      services.now = real;
    }
  });
});
