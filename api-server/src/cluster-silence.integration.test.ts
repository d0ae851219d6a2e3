import { KubeClient } from "@slipway/controller-runtime";
import { connectLedger, insertOrganization, type Ledger, migrateToLatest } from "@slipway/ledger";
import { afterAll, beforeAll, expect, it } from "vitest";
import { exampleBody, type Harness, startHarness } from "../../test/kit/api-server/harness.ts";
import { FakeApiserver } from "../../test/kit/apiserver/fake-apiserver.ts";
import { TcpProxy } from "../../test/kit/processes/tcp-proxy.ts";
import { startPostgres, type TestPostgres } from "../../test/kit/servers/postgresql.ts";

/** A network between the API server and the apiserver that drops everything and says nothing of it. */

const ORGANIZATION = "acme";
/** Of one call of the cluster. */
const CALL_MS = 1_000;
// Of a machine that does much else: what is not bounded takes minutes.
const MARGIN_MS = 4_000;

let postgres: TestPostgres;
let apiserver: FakeApiserver;
let proxy: TcpProxy;
let ledger: Ledger;
let harness: Harness;
let headers: Record<string, string>;

beforeAll(async () => {
  [postgres, apiserver] = await Promise.all([startPostgres(), FakeApiserver.start()]);
  proxy = new TcpProxy({ host: "127.0.0.1", port: Number(new URL(apiserver.url).port) });
  await proxy.up();
  ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(ledger);
  await insertOrganization(ledger, { id: ORGANIZATION, name: "Acme" });
  const kube = KubeClient.forUrl(`http://127.0.0.1:${proxy.port}`, { timeoutMs: CALL_MS, connections: 4 });
  harness = await startHarness(kube, { ledger });
  await harness.namespace(ORGANIZATION);
  await harness.project(ORGANIZATION, "shop");
  headers = {
    ...harness.key(ORGANIZATION, "* on organization:*", "* on project:*"),
    "content-type": "application/json",
  };
});
afterAll(async () => {
  proxy?.stall(false);
  await harness?.close();
  await ledger?.destroy();
  await proxy?.down();
  await postgres?.stop();
  await apiserver?.stop();
});

const send = async (method: "GET" | "PATCH" | "POST", path: string, payload?: object) => {
  const started = performance.now();
  const url = `/v1/project${path}`;
  const answer = await harness.app.inject({ method, url, headers, ...(payload ? { payload } : {}) });
  return { answer: answer.json().code ?? answer.statusCode, ms: performance.now() - started };
};
const rename = (index: number) => send("PATCH", "/shop/name", { name: `renamed-${index}` });
const create = () => send("POST", "", exampleBody({ plan: "basic" }));
const silent = (withinMs: number) => ({
  answer: "CLUSTER_UNAVAILABLE",
  ms: expect.toSatisfy((ms: number) => ms < withinMs),
});

// Shows: docs/applications.md#errors-every-operation: 503 | `CLUSTER_UNAVAILABLE`
it("answers 503 in time, however many wait, and serves again immediately", async () => {
  expect((await create()).answer).toBe(201);
  proxy.stall(true);
  // The first reads something else after its failure: whether it created the project.
  expect(await create()).toEqual(silent(2 * CALL_MS + MARGIN_MS));
  expect(await send("GET", "/unknown-project")).toEqual(silent(CALL_MS + MARGIN_MS));
  expect((await send("GET", "/shop")).answer).toBe(200);
  const changes = await Promise.all(Array.from({ length: 60 }, (_, index) => rename(index)));
  for (const change of changes) {
    expect(change).toEqual(silent(10_000 + CALL_MS + MARGIN_MS));
  }
  proxy.stall(false);
  expect((await rename(61)).answer).toBe(200);
  expect((await create()).answer).toBe(201);
}, 240_000);
