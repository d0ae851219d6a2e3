import { KubeClient, type KubernetesObject } from "@slipway/controller-runtime";
import { organizationNamespace, type Project } from "@slipway/crds";
import {
  connectLedger,
  insertOrganization,
  type Ledger,
  listQuotaReservations,
  migrateToLatest,
  setPlanCapacity,
} from "@slipway/ledger";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  exampleBody,
  exampleSpec,
  type Harness,
  startHarness,
  ZONE,
} from "../../../test/kit/api-server/harness.ts";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import { failures } from "../errors/catalog.ts";
import { domainClaimResource, projectResource } from "../resources.ts";
import type { Services } from "../services.ts";
import type { ApiProject } from "./api-project.ts";
import { pauseProject, resumeProject } from "./lifecycle.ts";
import { changeWithQuota, releaseProjectQuota, reserveProjectQuota } from "./quotas.ts";

/** Two replicas of the API server over one ledger and one cluster. */

let postgres: TestPostgres;
let apiserver: FakeApiserver;
let pools: Ledger[];
let replicas: [Harness, Harness];

beforeAll(async () => {
  [postgres, apiserver] = await Promise.all([startPostgres(), FakeApiserver.start()]);
  pools = [1, 2].map(() => connectLedger({ url: postgres.url, applicationName: "test" }));
  const [first, second] = pools as [Ledger, Ledger];
  await migrateToLatest(first);
  const start = (ledger: Ledger) => startHarness(KubeClient.forUrl(apiserver.url), { ledger });
  replicas = [await start(first), await start(second)];
});
afterAll(async () => {
  await Promise.all((replicas ?? []).map((replica) => replica.close()));
  await Promise.all((pools ?? []).map((pool) => pool.destroy()));
  await apiserver?.stop();
  await postgres?.stop();
});
afterEach(() => setPlanCapacity(ledger(), "basic", null));

const ledger = () => pools[0] as Ledger;
let organizations = 0;

/** An organization ready to take projects, known to both replicas. */
async function organization() {
  organizations += 1;
  const id = `org-${organizations}`;
  await insertOrganization(ledger(), { id, name: id });
  await replicas[0].namespace(id);
  const headers = replicas.map((replica) => replica.key(id, "* on organization:*", "* on project:*"));
  const send = (index: number, method: "POST" | "DELETE", url: string, body?: object, key?: string) =>
    (replicas[(index % 2) as 0 | 1] as Harness).app.inject({
      method,
      url,
      headers: {
        ...headers[index % 2],
        ...(body ? { "content-type": "application/json" } : {}),
        ...(key ? { "idempotency-key": key } : {}),
      },
      payload: body,
    });
  const create = (index: number, body = exampleBody(), key?: string) =>
    send(index, "POST", "/v1/project", body, key);
  const remove = (index: number, project: string) => send(index, "DELETE", `/v1/project/${project}`);
  return { id, create, remove };
}

const reservationsOf = async (id: string) =>
  (await listQuotaReservations(ledger())).filter((row) => row.organization_id === id);
const projectsOf = async (id: string) =>
  (await replicas[0].kube.listAll<Project>(projectResource, { namespace: organizationNamespace(id) })).map(
    ({ metadata }) => metadata.name,
  );
const tally = (answers: { json: () => { code?: string; status: string } }[]) => {
  const counts: Record<string, number> = {};
  for (const answer of answers) {
    const { code, status } = answer.json();
    counts[code ?? status] = (counts[code ?? status] ?? 0) + 1;
  }
  return counts;
};
const rush = <T>(times: number, call: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: times }, (_, index) => call(index)));

/** A ledger in which something else is done before anything is deleted. */
function beforeDelete(ledger: Ledger, first: () => Promise<unknown>): Ledger {
  const late = <T extends object>(query: T): T =>
    new Proxy(query, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") {
          return value;
        }
        if (name === "executeTakeFirst") {
          return () => first().then(() => value.call(target));
        }
        return (...given: unknown[]) => {
          const made: unknown = value.apply(target, given);
          return target !== (ledger as object) || name === "deleteFrom" ? late(made as object) : made;
        };
      },
    });
  return late(ledger);
}

describe("50 identical concurrent requests over two replicas", () => {
  // Shows: docs/applications.md#limits: free plan | 2 instances, counted exactly under 50 concurrent
  // Shows: docs/applications.md#errors-project-creation: 409 | `FREE_PLAN_INSTANCE_LIMIT_REACHED`
  it("create exactly as many free projects as the limit allows", async () => {
    const { id, create } = await organization();
    const answers = await rush(50, (index) => create(index));
    expect(tally(answers)).toEqual({ success: 2, FREE_PLAN_INSTANCE_LIMIT_REACHED: 48 });
    expect(answers.find((answer) => answer.statusCode === 409)?.json()).toMatchObject({ limit: 2 });
    expect(await projectsOf(id)).toHaveLength(2);
    expect((await reservationsOf(id)).map((row) => row.project_id).sort()).toEqual(
      (await projectsOf(id)).sort(),
    );
  });

  it("create exactly one of two instances, and refuse the others", async () => {
    const { id, create } = await organization();
    const answers = await rush(50, (index) => create(index, exampleBody({}, { instances: 2 })));
    expect(tally(answers)).toEqual({ success: 1, FREE_PLAN_INSTANCE_LIMIT_REACHED: 49 });
    expect(await projectsOf(id)).toHaveLength(1);
  });

  // Shows: docs/applications.md#create: `Idempotency-Key`: the same request again answers the same
  it("create one project with one reservation under one Idempotency-Key", async () => {
    const { id, create } = await organization();
    const answers = await rush(50, (index) => create(index, exampleBody(), "0123456789abcdef"));
    expect(tally(answers)).toEqual({ success: 50 });
    expect(new Set(answers.map((answer) => answer.json().data.project_id)).size).toBe(1);
    expect(await reservationsOf(id)).toHaveLength(1);
  });

  // Shows: docs/applications.md#errors-project-creation: 409 | `INSUFFICIENT_PLAN_CAPACITY`
  // Shows: docs/applications.md#administration: `admin capacity set`
  it("create exactly as many projects as the plan's capacity has left over all organizations", async () => {
    const both = [await organization(), await organization()];
    await setPlanCapacity(ledger(), "basic", 3);
    const answers = await rush(50, (index) =>
      (both[(index >> 1) % 2] as (typeof both)[0]).create(index, exampleBody({ plan: "basic" })),
    );
    expect(tally(answers)).toEqual({ success: 3, INSUFFICIENT_PLAN_CAPACITY: 47 });
    const refused = answers.find((answer) => answer.json().code === "INSUFFICIENT_PLAN_CAPACITY");
    expect(refused?.statusCode).toBe(409);
    expect(await reservationsOf(both[0]?.id ?? "")).not.toHaveLength(50);
  });

  it("leave no reservation of those whose domain was taken", async () => {
    const { id, create } = await organization();
    const body = exampleBody({ plan: "basic" }, { subdomain: "contested" });
    const answers = await rush(50, (index) => create(index, body));
    expect(tally(answers)).toEqual({ success: 1, DOMAIN_UNAVAILABLE: 49 });
    expect((await reservationsOf(id)).map((row) => row.project_id)).toEqual(await projectsOf(id));
  });
});

describe("quotas of a creation", () => {
  // Shows: docs/applications.md#errors-project-creation: 409 | `FREE_PLAN_INSTANCE_LIMIT_EXCEEDED`
  it("say how many instances are left", async () => {
    const { create } = await organization();
    expect((await create(0)).statusCode).toBe(201);
    const refused = await create(1, exampleBody({}, { instances: 2 }));
    expect(refused.json()).toMatchObject({
      code: "FREE_PLAN_INSTANCE_LIMIT_EXCEEDED",
      limit: 2,
      remaining: 1,
    });
    expect((await create(1)).statusCode).toBe(201);
  });

  // Shows: docs/applications.md#delete: the quota of the project is released
  it("are free again once a project is deleted", async () => {
    const { id, create, remove } = await organization();
    const first = (await create(0)).json().data.project_id;
    await create(1);
    expect((await create(0)).statusCode).toBe(409);
    expect((await remove(1, first)).statusCode).toBe(200);
    expect(await reservationsOf(id)).toHaveLength(1);
    expect((await create(0)).statusCode).toBe(201);
  });

  // Shows: docs/applications.md#errors-project-creation: 503 | `ORGANIZATION_RUNTIME_UNAVAILABLE`: the
  it("are free again when the organization's namespace cannot take it", async () => {
    const id = `bare-${++organizations}`;
    await insertOrganization(ledger(), { id, name: id });
    const refused = await replicas[0].app.inject({
      method: "POST",
      url: "/v1/project",
      headers: { ...replicas[0].key(id, "* on organization:*"), "content-type": "application/json" },
      payload: exampleBody(),
    });
    expect(refused.json()).toMatchObject({ code: "ORGANIZATION_RUNTIME_UNAVAILABLE" });
    expect(await reservationsOf(id)).toEqual([]);
  });
});

describe("quotas of a change", () => {
  const organizationId = "changes";
  const services = () => replicas[0].services;
  const reservations = async () =>
    (await reservationsOf(organizationId)).map((row) => `${row.project_id} ${row.plan}`).sort();
  const find = async (id: string) => (await services().projects.find(organizationId, id)) as ApiProject;
  const made = async (id: string, change: Partial<Project["spec"]> = {}) => {
    const { spec } = await replicas[0].project(organizationId, id, change);
    await reserveProjectQuota(services(), { organizationId, projectId: id, spec });
    return find(id);
  };
  const toBasic = (spec: Project["spec"]) => ({ ...spec, plan: "basic" });
  afterEach(async () => {
    for (const row of await reservationsOf(organizationId)) {
      await releaseProjectQuota(services(), { organizationId, projectId: row.project_id }, row.version);
    }
  });

  it("are those of the new plan once it is written", async () => {
    await changeWithQuota(await made("written"), services(), toBasic);
    expect(await reservations()).toEqual(["written basic"]);
  });

  it("are those of the old plan again after a refused write", async () => {
    const hostname = `held-by-another.${ZONE}`;
    await replicas[0].kube.create(domainClaimResource, {
      metadata: { name: hostname },
      spec: { hostname, projectRef: { namespace: "elsewhere", name: "holder", uid: "u1" } },
    } as KubernetesObject);
    const refused = changeWithQuota(await made("refused"), services(), (spec) => ({
      ...toBasic(spec),
      subdomain: "held-by-another",
    }));
    await expect(refused).rejects.toMatchObject({ code: "DOMAIN_UNAVAILABLE" });
    expect(await reservations()).toContain("refused free");
  });

  it("are those of what another replica wrote between two tries, of which the second is refused", async () => {
    const project = await made("replaced");
    const [here, there] = replicas.map((replica) => replica.services) as [Services, Services];
    let tries = 0;
    const change = (spec: Project["spec"]) => {
      tries += 1;
      if (tries > 1) {
        throw failures.projectPrivate();
      }
      return { ...spec, plan: "pro" };
    };
    const prepare = async () => {
      // Reserves before this replica does, and writes before it.
      const { metadata, spec } = project.resource;
      await reserveProjectQuota(there, { organizationId, projectId: project.id, spec: toBasic(spec) });
      await there.kube.patch(projectResource, metadata, { spec: { plan: "basic" } });
    };
    const refused = changeWithQuota(project, here, change, { prepare });
    await expect(refused).rejects.toMatchObject({ code: "PROJECT_PRIVATE" });
    expect(tries).toBe(2);
    expect(await reservations()).toEqual(["replaced basic"]);
  });

  it("stay those of the new plan after a write whose outcome is unknown", async () => {
    const project = await made("unknown");
    const isPatch = ({ method }: { method: string }) => method === "PATCH";
    apiserver.failNext(isPatch, { status: 500, times: 1 });
    await expect(changeWithQuota(project, services(), toBasic)).rejects.toMatchObject({ status: 503 });
    expect(await reservations()).toEqual(["unknown basic"]);
  });

  it("are refused before anything is written", async () => {
    const project = await made("wanting", { plan: "basic" });
    await made("full", { instances: 2 });
    const refused = changeWithQuota(project, services(), (spec) => ({ ...spec, plan: "free" }));
    await expect(refused).rejects.toMatchObject({ code: "FREE_PLAN_INSTANCE_LIMIT_REACHED", status: 409 });
    expect((await find("wanting")).resource.spec.plan).toBe("basic");
    expect(await reservations()).toEqual(["full free", "wanting basic"]);
  });

  it("are none while paused, and free for the others until the project is resumed", async () => {
    const paused = await made("paused", { paused: true, instances: 2 });
    expect(await reservations()).toEqual([]);
    await made("other");
    const resume = ({ paused: _, ...spec }: Project["spec"]) => spec;
    const refused = changeWithQuota(paused, services(), resume);
    await expect(refused).rejects.toMatchObject({ code: "FREE_PLAN_INSTANCE_LIMIT_EXCEEDED", status: 409 });
    expect(await reservations()).toEqual(["other free"]);
  });

  it("are not taken from a resume by the pause before it", async () => {
    const project = await made("crossed");
    const [here, there] = replicas.map((replica) => replica.services) as [Services, Services];
    // The pause is written, and its replica is paused before it releases the quota.
    let resumed = false;
    const ledger = beforeDelete(here.ledger, async () => {
      const paused = (await there.projects.find(organizationId, "crossed")) as ApiProject;
      resumed = (await resumeProject(paused, there)).resource.spec.paused === undefined;
    });
    await pauseProject(project, { ...here, ledger });
    const live = await replicas[0].kube.get<Project>(projectResource, {
      namespace: organizationNamespace(organizationId),
      name: "crossed",
    });
    expect([resumed, live.spec.paused]).toEqual([true, undefined]);
    expect(await reservations()).toEqual(["crossed free"]);
  });

  it("are free after a pause", async () => {
    await pauseProject(await made("stopped"), services());
    expect(await reservations()).toEqual([]);
  });

  // Shows: docs/applications.md#errors-project-creation: 503 | `PLAN_CAPACITY_TEMPORARILY_UNAVAILABLE`
  it("are unknown while the ledger is unavailable", async () => {
    const away = connectLedger({ url: "postgresql://nobody@127.0.0.1:1/none", applicationName: "test" });
    const refused = reserveProjectQuota(
      { ...services(), ledger: away },
      { organizationId, projectId: "p1", spec: exampleSpec },
    );
    await expect(refused).rejects.toMatchObject({
      code: "PLAN_CAPACITY_TEMPORARILY_UNAVAILABLE",
      status: 503,
      headers: { "retry-after": "5" },
    });
    await away.destroy();
  });
});
