import { KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { organizationNamespace, type Project } from "@slipway/crds";
import {
  connectLedger,
  findIdempotencyRecord,
  insertOrganization,
  type Ledger,
  listQuotaReservations,
  migrateToLatest,
  releaseIdempotencyKey,
  reserveIdempotencyKey,
  setOrganizationBlocked,
} from "@slipway/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exampleBody, type Harness, startHarness, ZONE } from "../../../test/kit/api-server/harness.ts";
import { statusAndCode } from "../../../test/kit/api-server/status-and-code.ts";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import { domainClaimResource, projectResource } from "../resources.ts";
import { bodyHash } from "./creation/idempotency.ts";

/** What a repeat under one Idempotency-Key meets: crashes, refusals and other replicas. Two replicas, one ledger. */

let postgres: TestPostgres;
let apiserver: FakeApiserver;
let pools: [Ledger, Ledger];
let replicas: [Harness, Harness];

beforeAll(async () => {
  [postgres, apiserver] = await Promise.all([startPostgres(), FakeApiserver.start()]);
  const pool = () => connectLedger({ url: postgres.url, applicationName: "test" });
  pools = [pool(), pool()];
  await migrateToLatest(pools[0]);
  const start = (ledger: Ledger) => startHarness(KubeClient.forUrl(apiserver.url), { ledger });
  replicas = [await start(pools[0]), await start(pools[1])];
});
afterAll(async () => {
  await Promise.all((replicas ?? []).map((replica) => replica.close()));
  await Promise.all((pools ?? []).map((pool) => pool.destroy()));
  await apiserver?.stop();
  await postgres?.stop();
});

const KEY = "the-same-key-0123456789";
let organizations = 0;
async function organization(ready = true) {
  organizations += 1;
  const id = `org-${organizations}`;
  await insertOrganization(pools[0], { id, name: id });
  const makeReady = () => replicas[0].namespace(id);
  if (ready) {
    await makeReady();
  }
  const headers = replicas.map((replica) => replica.key(id, "* on organization:*", "* on project:*"));
  const create = (body: object, index = 0, key = KEY) =>
    (replicas[(index % 2) as 0 | 1] as Harness).app.inject({
      method: "POST",
      url: "/v1/project",
      headers: { ...headers[index % 2], "content-type": "application/json", "idempotency-key": key },
      payload: body,
    });
  const namespace = organizationNamespace(id);
  const { kube } = replicas[0];
  const projects = () => kube.listAll<Project>(projectResource, { namespace });
  const secrets = () => kube.listAll<KubernetesObject>(resources.secrets, { namespace });
  const record = () => findIdempotencyRecord(pools[0], { organizationId: id, key: KEY });
  const reservations = async () =>
    (await listQuotaReservations(pools[0])).filter((row) => row.organization_id === id);
  /** As after a crash: written, but not said so. */
  const forget = () =>
    pools[0]
      .updateTable("idempotency_records")
      .set({ completed_at: null as unknown as Date })
      .where("organization_id", "=", id)
      .execute();
  const setPending = (name: string, creationPending: true | null) =>
    kube.patch(projectResource, { namespace, name }, { spec: { creationPending } });
  return { id, namespace, create, makeReady, projects, secrets, record, reservations, forget, setPending };
}

const basic = (config: Record<string, unknown> = {}, change: object = {}) =>
  exampleBody({ plan: "basic", ...change }, { envs: [{ name: "A", value: "1" }], ...config });
type Response = Awaited<ReturnType<Awaited<ReturnType<typeof organization>>["create"]>>;
const idOf = (response: Response) => response.json().data.project_id as string;
let faulty = false;
/** Until `faulty` is false again. */
function fail(status: number, reason: string, method: string, path: RegExp): void {
  faulty = true;
  const matches = (seen: { method: string; path: string }) =>
    faulty && seen.method === method && path.test(seen.path);
  apiserver.failNext(matches, { status, reason, times: 100 });
}

/** A catalog in which something is missing, for as long as work takes. */
async function without<T>(what: "plan" | "template", work: () => Promise<T>): Promise<T> {
  const [{ services }] = replicas;
  const { catalog } = services;
  const current =
    what === "template"
      ? { ...catalog.current, templates: [] }
      : { ...catalog.current, httpPlans: catalog.current.httpPlans.filter(({ plan }) => plan !== "basic") };
  Object.assign(services, { catalog: { current } });
  try {
    return await work();
  } finally {
    Object.assign(services, { catalog });
  }
}

describe("a second try", () => {
  // Shows: docs/applications.md#create: `Idempotency-Key`: requests with one key are serialized, over
  it.each([
    [429, "TooManyRequests"],
    [403, "Forbidden"],
  ])("that the cluster would refuse with %i leaves a live project alone", async (status, reason) => {
    const org = await organization();
    const id = idOf(await org.create(basic()));
    const [reservation] = await org.reservations();
    await org.forget();
    fail(status, reason, "POST", new RegExp(`${org.namespace}/(secrets|projects)`));
    const again = await org.create(basic(), 1);
    faulty = false;
    expect([again.statusCode, idOf(again)]).toEqual([201, id]);
    expect((await org.projects()).map(({ metadata }) => metadata.name)).toEqual([id]);
    expect(await org.secrets()).toHaveLength(1);
    expect((await org.record())?.completed_at).not.toBeNull();
    // Its plan may have been changed since.
    expect((await org.reservations())[0]?.version).toBe(reservation?.version);
  });

  // Shows: docs/applications.md#errors-project-creation: 503 | `CREATION_IN_PROGRESS`: another request
  it("waits for a project that is being deleted, and creates nothing meanwhile", async () => {
    const org = await organization();
    const id = idOf(await org.create(basic()));
    await org.forget();
    const ref = { namespace: org.namespace, name: id };
    const { kube } = replicas[0];
    await kube.patch(projectResource, ref, { metadata: { finalizers: ["slipway.dev/project"] } });
    await kube.delete(projectResource, ref);
    const again = await org.create(basic());
    expect(statusAndCode(again)).toEqual([503, "CREATION_IN_PROGRESS"]);
    expect(again.headers["retry-after"]).toBe("5");
    expect(await org.record()).toMatchObject({ project_id: id, completed_at: null });
    await kube.patch(projectResource, ref, { metadata: { finalizers: [] } });
  });

  // Shows: docs/applications.md#create: `Idempotency-Key`: a rejection releases it; a creation that a
  it("gets another id once what was refused is taken back, whatever the status", async () => {
    const org = await organization();
    fail(403, "Forbidden", "POST", /domainclaims/);
    const refused = await org.create(basic({ subdomain: "taken-back" }));
    faulty = false;
    expect(statusAndCode(refused)).toEqual([503, "PLAN_CAPACITY_TEMPORARILY_UNAVAILABLE"]);
    expect(await org.record()).toBeUndefined();
    expect([await org.projects(), await org.secrets(), await org.reservations()]).toEqual([[], [], []]);
    expect((await org.create(basic({ subdomain: "taken-back" }))).statusCode).toBe(201);
  });
});

describe("what a crash left unfinished", () => {
  const half = async (subdomain: string) => {
    const org = await organization();
    const id = idOf(await org.create(basic({ subdomain })));
    await org.forget();
    await org.setPending(id, true);
    return { ...org, projectId: id, body: basic({ subdomain }) };
  };

  it("is finished by the next try under the same id", async () => {
    const org = await half("to-be-finished");
    expect(idOf(await org.create(org.body, 1))).toBe(org.projectId);
    expect((await org.projects())[0]?.spec.creationPending).toBeUndefined();
  });

  // Shows: docs/applications.md#create: `Idempotency-Key`: a rejection releases it; a creation that a
  it("is taken back with its quota before its key is free, when its domain is another's now", async () => {
    const org = await half("given-to-another");
    const name = `given-to-another.${ZONE}`;
    const { kube } = replicas[0];
    const claim = await kube.get<KubernetesObject & { spec: object }>(domainClaimResource, { name });
    await kube.delete(domainClaimResource, { name });
    const projectRef = { namespace: "elsewhere", name: "other", uid: "another" };
    const { resourceVersion: _, uid: __, ...metadata } = claim.metadata ?? {};
    await kube.create(domainClaimResource, { ...claim, metadata, spec: { ...claim.spec, projectRef } });
    expect(statusAndCode(await org.create(org.body))).toEqual([409, "DOMAIN_UNAVAILABLE"]);
    expect([await org.projects(), await org.secrets(), await org.reservations()]).toEqual([[], [], []]);
    expect(await org.record()).toBeUndefined();
    expect(await kube.getOrUndefined(domainClaimResource, { name })).toBeDefined();
  });

  it("is taken back when the organization is blocked now", async () => {
    const org = await half("blocked-meanwhile");
    await setOrganizationBlocked(pools[0], org.id, true);
    expect(statusAndCode(await org.create(org.body))).toEqual([402, "ORGANIZATION_BLOCKED"]);
    expect([await org.projects(), await org.secrets(), await org.reservations()]).toEqual([[], [], []]);
    expect(await org.record()).toBeUndefined();
  });

  it("keeps its key while it cannot be taken back", async () => {
    const org = await half("cannot-be-deleted");
    await setOrganizationBlocked(pools[0], org.id, true);
    fail(500, "InternalError", "DELETE", new RegExp(`${org.namespace}/projects`));
    expect(statusAndCode(await org.create(org.body))).toEqual([402, "ORGANIZATION_BLOCKED"]);
    faulty = false;
    expect((await org.record())?.project_id).toBe(org.projectId);
    expect(await org.reservations()).toHaveLength(1);
  });
});

describe("calls with one key at the same time", () => {
  // Shows: docs/applications.md#create: `Idempotency-Key`: the same request again answers the same
  it("never make two projects of a brand new organization that becomes ready in between", async () => {
    const org = await organization(false);
    const early = Array.from({ length: 25 }, (_, index) => org.create(basic(), index));
    await Promise.race(early);
    await org.makeReady();
    const late = Array.from({ length: 25 }, (_, index) => org.create(basic(), index));
    const answers = await Promise.all([...early, ...late]);
    const created = answers.filter((answer) => answer.statusCode === 201);
    const refused = answers.filter((answer) => answer.statusCode !== 201);
    expect(refused.length).toBeGreaterThan(0);
    expect(new Set(refused.map((answer) => answer.json().code))).toEqual(
      new Set(["ORGANIZATION_RUNTIME_UNAVAILABLE"]),
    );
    expect(created.length).toBeGreaterThan(24);
    expect(new Set(created.map(idOf)).size).toBe(1);
    expect(await org.projects()).toHaveLength(1);
    expect(await org.reservations()).toHaveLength(1);
  });

  // Shows: docs/applications.md#create: `Idempotency-Key`: requests with one key are serialized, over
  it("wait for the one of another replica, and continue under its id", async () => {
    const org = await organization();
    const name = { organizationId: org.id, key: KEY };
    const bodySha256 = bodyHash(basic());
    const projectId = "p0123456789abcdefghi";
    await reserveIdempotencyKey(pools[0], {
      ...name,
      bodySha256,
      projectId,
      holder: "other",
      holdSeconds: 60,
    });
    let answered = false;
    const call = org.create(basic()).finally(() => {
      answered = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(answered).toBe(false);
    await releaseIdempotencyKey(pools[0], name, "other");
    expect(idOf(await call)).toBe(projectId);
  });
});

describe("a repeat of what was created", () => {
  const template = { template_id: "hello", template_revision: 1, name: "from-template", plan: "basic" };

  // Shows: docs/applications.md#create: `Idempotency-Key`: the same request again answers the same
  it("is the same project in a blocked organization, and without its plan or its template", async () => {
    const org = await organization();
    const first = await org.create(template);
    expect(first.statusCode).toBe(201);
    await setOrganizationBlocked(pools[0], org.id, true);
    const repeats = [
      await org.create(template),
      await without("plan", () => org.create(template)),
      await without("template", () => org.create(template)),
    ];
    expect(repeats.map((repeat) => [repeat.statusCode, repeat.json()])).toEqual(
      Array(3).fill([201, first.json()]),
    );
  });

  // Shows: docs/applications.md#create: `Idempotency-Key`: the same request again answers the same
  it("is the same project after its hostname became the platform's", async () => {
    const org = await organization();
    const first = await org.create(basic({ subdomain: "reserved-later" }));
    const { services } = replicas[0];
    const { reservedHostnames } = services;
    Object.assign(services, { reservedHostnames: ["reserved-later"] });
    const again = await org.create(basic({ subdomain: "reserved-later" }));
    Object.assign(services, { reservedHostnames });
    expect([again.statusCode, again.json()]).toEqual([201, first.json()]);
  });

  // Shows: docs/applications.md#create: `Idempotency-Key`: another body is 409; each organization has
  it("is a conflict with another body before that body is validated", async () => {
    const org = await organization();
    await org.create(basic());
    await setOrganizationBlocked(pools[0], org.id, true);
    expect(statusAndCode(await org.create({ name: "x" }))).toEqual([409, "IDEMPOTENCY_KEY_CONFLICT"]);
  });

  it("needs the permission of its type, also where the body no longer has it", async () => {
    const org = await organization();
    await org.create(template);
    const databases = replicas[0].key(org.id, "database.create on organization:*");
    const again = await without("template", () =>
      replicas[0].app.inject({
        method: "POST",
        url: "/v1/project",
        headers: { ...databases, "idempotency-key": KEY },
        payload: template,
      }),
    );
    expect(statusAndCode(again)).toEqual([403, "PERMISSION_DENIED"]);
  });
});
