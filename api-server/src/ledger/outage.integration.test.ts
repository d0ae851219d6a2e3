import { createHash, generateKeyPairSync } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { KubeClient, resources } from "@slipway/controller-runtime";
import { organizationNamespace, type Project } from "@slipway/crds";
import {
  connectLedger,
  insertApiKey,
  insertOrganization,
  type Ledger,
  listQuotaReservations,
  migrateToLatest,
} from "@slipway/ledger";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { exampleBody, type Harness, startHarness } from "../../../test/kit/api-server/harness.ts";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import { LedgerAuditLog } from "../audit/log.ts";
import { Authenticator, ledgerCredentials } from "../auth/authenticator.ts";
import { generateApiKey, ownTokenVerifier } from "../auth/credentials.ts";
import { failures } from "../errors/catalog.ts";
import { projectResource } from "../resources.ts";

/** What clients see while the ledger is away, and afterwards: with real credentials and the real audit log. */

const CREATE = { url: "/v1/project", payload: exampleBody({ plan: "basic" }) };
const ORGANIZATION = "acme";

let postgres: TestPostgres;
let ledger: Ledger;
let apiserver: FakeApiserver;
let harness: Harness;
let audit: LedgerAuditLog;
let key: string;

beforeAll(async () => {
  [postgres, apiserver] = await Promise.all([startPostgres(), FakeApiserver.start()]);
  ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(ledger);
  await insertOrganization(ledger, { id: ORGANIZATION, name: "Acme" });
  key = await newKey();
  audit = new LedgerAuditLog(ledger, pino({ level: "silent" }), { lost: () => {}, unrecorded: () => {} });
  const authenticator = new Authenticator(
    ledgerCredentials(ledger),
    ownTokenVerifier(generateKeyPairSync("ed25519")),
  );
  harness = await startHarness(KubeClient.forUrl(apiserver.url), { ledger, audit, authenticator });
  await harness.namespace(ORGANIZATION);
});
afterAll(async () => {
  await harness?.close();
  await audit?.close();
  await ledger?.destroy();
  await postgres?.stop();
  await apiserver?.stop();
});
beforeEach(() => ledger.deleteFrom("audit_log").execute());

async function newKey(): Promise<string> {
  const { id, key: text, sha256 } = generateApiKey();
  const grants = ["organization:*", "project:*"].map((resource) => ({ permission: "*", resource }));
  await insertApiKey(ledger, { id, organizationId: ORGANIZATION, prefix: "slw", sha256, grants });
  return text;
}

const call = (method: "GET" | "POST" | "DELETE", url: string, payload?: object, more: object = {}) =>
  harness.app.inject({
    method,
    url,
    headers: {
      "x-api-key": key,
      ...(payload ? { "content-type": "application/json" } : {}),
      ...more,
    },
    payload,
  });
const codeOfRow = (row: { operation: string; code: string | null }) => `${row.operation} ${row.code}`;
const codeOf = (answer: { json: () => { code?: string } }) => answer.json().code;
const projects = () =>
  harness.kube.listAll<Project>(projectResource, { namespace: organizationNamespace(ORGANIZATION) });
const rows = () =>
  ledger
    .selectFrom("audit_log")
    .select(["operation", "actor", "project_id", "status", "code"])
    .orderBy("id")
    .execute();
/** Every object of the organization in the cluster, with its version. */
const clusterState = async () => {
  const namespace = organizationNamespace(ORGANIZATION);
  const all = [...(await projects()), ...(await harness.kube.listAll(resources.secrets, { namespace }))];
  const text = JSON.stringify(all.map(({ metadata }) => [metadata?.name, metadata?.resourceVersion]).sort());
  return createHash("sha256").update(text).digest("hex");
};

/** The next Project is created through this. */
function onNextProjectCreation(instead: (create: () => Promise<unknown>) => Promise<unknown>): void {
  const { kube } = harness;
  const until = kube.until.bind(kube);
  kube.until = (signal) => {
    const bounded = until(signal);
    const create = bounded.create.bind(bounded);
    const replaced: typeof create = async <T>(...call: Parameters<typeof create>) => {
      if (call[0] !== projectResource) {
        return create(...call) as T;
      }
      kube.until = until;
      return (await instead(() => create(...call))) as T;
    };
    bounded.create = replaced;
    return bounded;
  };
}

/** The next project is created only once `resume` is called; `reached` resolves when it is about to be. */
function delayProjectCreation(): { reached: Promise<void>; resume: () => void } {
  const [reached, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  onNextProjectCreation(async (create) => {
    reached.resolve();
    await opened.promise;
    return create();
  });
  return { reached: reached.promise, resume: opened.resolve };
}

// Shows: docs/applications.md#conventions: without a ledger reads answer, writes are 503, and it
// Shows: docs/applications.md#errors-every-operation: 503 | `LEDGER_UNAVAILABLE`
it("refuses writes and changes nothing, answers reads that need no ledger, and recovers automatically", async () => {
  const created = (await call("POST", CREATE.url, CREATE.payload)).json().data.project_id;
  const before = await clusterState();
  const unknown = await newKey();
  await postgres.crash();

  const refused = await call("POST", CREATE.url, CREATE.payload);
  expect(codeOf(refused)).toBe("LEDGER_UNAVAILABLE");
  expect(refused.statusCode).toBe(503);
  expect(refused.headers["retry-after"]).toBe("5");
  const kept = await call("DELETE", `/v1/project/${created}`);
  expect([kept.statusCode, codeOf(kept)]).toEqual([503, "LEDGER_UNAVAILABLE"]);
  expect(await clusterState()).toBe(before);

  // Past the time for which a credential is fresh.
  await sleep(3_200);
  expect((await call("GET", `/v1/project/${created}`)).statusCode).toBe(200);
  expect((await call("GET", "/v1/project")).json().data.projects).toHaveLength(1);
  expect((await call("GET", "/v1/project/plans")).statusCode).toBe(200);
  expect(codeOf(await call("GET", `/v1/project/${created}`, undefined, { "x-api-key": unknown }))).toBe(
    "LEDGER_UNAVAILABLE",
  );
  // An invalid request is refused before the ledger is needed.
  expect(codeOf(await call("POST", CREATE.url, { name: "A" }))).toBe("VALIDATION_FAILED");

  await postgres.restart();
  await expect.poll(async () => (await call("POST", CREATE.url, CREATE.payload)).statusCode).toBe(201);
  expect((await call("DELETE", `/v1/project/${created}`)).statusCode).toBe(200);
  expect((await call("GET", "/v1/project", undefined, { "x-api-key": unknown })).statusCode).toBe(200);
  // The refusals of the outage are in the audit log, too.
  const refusals = () =>
    rows().then((all) => all.filter(({ status }) => status !== 200 && status !== 201).map(codeOfRow));
  const during = ["createProject LEDGER_UNAVAILABLE", "deleteProject LEDGER_UNAVAILABLE"];
  await expect.poll(refusals).toEqual(expect.arrayContaining([...during, "createProject VALIDATION_FAILED"]));
});

// Shows: docs/applications.md#conventions: every write is in the audit log, with its outcome and
it("has a row before the project is there, with its outcome after, and no secret", async () => {
  const secret = "c4n4ry-1n-4n-env";
  const payload = exampleBody({ plan: "basic" }, { envs: [{ name: "TOKEN", value: secret }] });
  const id = (await call("POST", CREATE.url, payload)).json().data.project_id;
  await call("DELETE", `/v1/project/${id}`);
  await call("DELETE", `/v1/project/${id}`);
  await call("POST", CREATE.url, { name: "A" });
  const actor = expect.stringMatching(/^api-key:/);
  await expect.poll(rows).toEqual([
    { operation: "createProject", actor, project_id: id, status: 201, code: null },
    { operation: "deleteProject", actor, project_id: id, status: 200, code: null },
    { operation: "deleteProject", actor, project_id: id, status: 409, code: "PROJECT_ALREADY_DELETED" },
    { operation: "createProject", actor, project_id: null, status: 400, code: "VALIDATION_FAILED" },
  ]);
  const everything = JSON.stringify(await ledger.selectFrom("audit_log").selectAll().execute());
  expect(everything).not.toContain(secret);
  expect(everything).not.toContain(key);
});

it("leaves a row that says unknown when the ledger becomes unavailable in the middle of a write, and takes nothing twice", async () => {
  const reservationsBefore = (await listQuotaReservations(ledger)).length;
  const keyed = { "idempotency-key": "in-the-middle-0123456789" };
  const { reached, resume } = delayProjectCreation();
  const creation = call("POST", CREATE.url, CREATE.payload, keyed);
  await reached;
  expect(await rows()).toEqual([expect.objectContaining({ operation: "createProject", status: null })]);
  await postgres.crash();
  resume();
  const answer = await creation;
  expect([answer.statusCode, codeOf(answer)]).toEqual([503, "LEDGER_UNAVAILABLE"]);
  await postgres.restart();
  await expect.poll(async () => (await rows())[0]).toMatchObject({ status: 503 });
  const again = await call("POST", CREATE.url, CREATE.payload, keyed);
  expect(again.statusCode).toBe(201);
  expect(await listQuotaReservations(ledger)).toHaveLength(reservationsBefore + 1);
});

// Shows: docs/applications.md#create: `Idempotency-Key`: a rejection releases it; a creation that a
it("reports that the key of a refused request could not be freed, and frees it with the next try", async () => {
  const keyed = { "idempotency-key": "refused-in-the-middle" };
  onNextProjectCreation(async () => {
    await postgres.crash();
    throw failures.organizationRuntimeUnavailable();
  });
  const answer = await call("POST", CREATE.url, CREATE.payload, keyed);
  expect([answer.statusCode, codeOf(answer)]).toEqual([503, "LEDGER_UNAVAILABLE"]);
  await postgres.restart();
  await expect.poll(async () => (await call("POST", CREATE.url, CREATE.payload, keyed)).statusCode).toBe(201);
});
