import { KubeClient } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { organizationNamespace, type Project } from "@slipway/crds";
import { connectLedger, insertOrganization, type Ledger, migrateToLatest } from "@slipway/ledger";
import { createLogger } from "@slipway/process";
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TestApiserver } from "../../hack/cluster/apiserver.ts";
import { exampleBody, type Harness, startHarness, ZONE } from "../../test/kit/api-server/harness.ts";
import { acquireApiserver } from "../../test/kit/clusters/shared-apiserver.ts";
import { isLong } from "../../test/kit/long.ts";
import { eventually } from "../../test/kit/processes/eventually.ts";
import { TcpProxy } from "../../test/kit/processes/tcp-proxy.ts";
import { startPostgres, type TestPostgres } from "../../test/kit/servers/postgresql.ts";
import { startValkey, type TestValkey } from "../../test/kit/servers/valkey.ts";
import { buildApp } from "./app.ts";
import { ApiMetrics } from "./http/api-metrics.ts";
import { ProjectStore } from "./projects/store.ts";
import { MemoryRateLimiter } from "./rate-limit/limiter.ts";
import { ValkeyRateLimiter } from "./rate-limit/valkey.ts";
import { projectResource } from "./resources.ts";

/**
 * Two replicas over a real kube-apiserver, PostgreSQL and Valkey. The second one hears of the cluster through a proxy
 * that delays everything on demand, for as long as the test needs.
 */

/** How often each of a creation, a change and a deletion is read through the other replica. */
const ROUNDS = isLong ? 200 : 60;

let apiserver: TestApiserver;
let postgres: TestPostgres;
let valkey: TestValkey;
let proxy: TcpProxy;
let ledger: Ledger;
let admin: KubeClient;
/** The first replica. */
let a: Harness;
/** The second, which lags. */
let b: FastifyInstance;
/** The second without Valkey: what it would answer. */
let blind: FastifyInstance;
let late: ProjectStore;
let metrics: ApiMetrics;
let headers: Record<string, string>;
const limiters: ValkeyRateLimiter[] = [];

const ORGANIZATION = "acme";

async function limiter(logger: Harness["services"]["logger"]): Promise<ValkeyRateLimiter> {
  const added = new ValkeyRateLimiter({ url: valkey.url, logger });
  await added.start();
  limiters.push(added);
  return added;
}

beforeAll(async () => {
  [apiserver, postgres, valkey] = await Promise.all([acquireApiserver(), startPostgres(), startValkey()]);
  ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(ledger);
  admin = KubeClient.fromConfig(loadKubeConfig({ file: apiserver.kubeconfig }));

  const silent = createLogger("api-server", "silent");
  const first = await limiter(silent);
  a = await startHarness(admin, { ledger, shared: { rateLimiter: first, writes: first } });
  await insertOrganization(ledger, { id: ORGANIZATION, name: ORGANIZATION });
  await a.namespace(ORGANIZATION);
  headers = a.key(ORGANIZATION, "* on organization:*", "* on project:*");

  proxy = new TcpProxy({ host: "127.0.0.1", port: Number(new URL(apiserver.url).port) });
  await proxy.up();
  const config = loadKubeConfig({ file: apiserver.kubeconfig });
  config.clusters = config.clusters.map((cluster) => ({
    ...cluster,
    server: `https://127.0.0.1:${proxy.port}`,
  }));
  const second = await limiter(silent);
  late = new ProjectStore({
    client: KubeClient.fromConfig(config),
    logger: silent,
    zone: ZONE,
    writes: second,
  });
  late.start();
  await eventually("the second replica to have synced", () => late.hasSynced, 10_000);
  metrics = new ApiMetrics({ processMetrics: false });
  const services = { ...a.services, projects: late, metrics };
  b = buildApp({ ...services, rateLimiter: second });
  blind = buildApp({
    ...services,
    rateLimiter: new MemoryRateLimiter(),
    metrics: new ApiMetrics({ processMetrics: false }),
  });
});

afterAll(async () => {
  await b?.close();
  await blind?.close();
  await late?.stop();
  await a?.close();
  await Promise.all(limiters.map((added) => added.close()));
  await proxy?.down();
  await ledger?.destroy();
  await Promise.all([valkey?.stop(), postgres?.stop(), apiserver?.stop()]);
});

const get = (app: FastifyInstance, url: string) => app.inject({ method: "GET", url, headers });
const names = async (app: FastifyInstance, search: string): Promise<string[]> => {
  const answer = await get(app, `/v1/project?search=${search}`);
  expect(answer.statusCode).toBe(200);
  const { data } = answer.json() as { data: { projects: { name: string }[] } };
  return data.projects.map(({ name }) => name);
};

async function create(name: string): Promise<string> {
  const answer = await a.app.inject({
    method: "POST",
    url: "/v1/project",
    headers: { ...headers, "content-type": "application/json" },
    payload: exampleBody({ name, plan: "basic" }, { exposure: "private" }),
  });
  expect(answer.statusCode, answer.body).toBe(201);
  return (answer.json() as { data: { project_id: string } }).data.project_id;
}

/** As a route that changes settings does it: live, then `observe`. */
async function rename(id: string, name: string): Promise<void> {
  const ref = { namespace: organizationNamespace(ORGANIZATION), name: id };
  const live = await admin.get<Project>(projectResource, ref);
  const changed = await admin.replace<Project>(projectResource, { ...live, spec: { ...live.spec, name } });
  await a.projects.observe(changed);
}

async function remove(id: string): Promise<void> {
  const answer = await a.app.inject({ method: "DELETE", url: `/v1/project/${id}`, headers });
  expect(answer.statusCode, answer.body).toBe(200);
}

/** Keeps the news of the write from the second replica until its reads have begun. */
async function whileLate<T>(write: () => Promise<void>, read: () => Promise<T>): Promise<T> {
  proxy.stall(true);
  try {
    await write();
    const reading = read();
    // On a slow machine, too, the read waits by then.
    await new Promise((resolve) => setTimeout(resolve, 25));
    proxy.stall(false);
    return await reading;
  } finally {
    proxy.stall(false);
  }
}

describe("what was written through one replica", () => {
  // Shows: docs/applications.md#conventions: a write is read afterwards, on either replica
  it(`is read through another immediately, ${ROUNDS} times, however late its watch is`, {
    timeout: 240_000,
  }, async () => {
    let seenByTheBlind = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const name = `shop-${round}`;
      let id = "";
      const created = await whileLate(
        async () => {
          id = await create(name);
          seenByTheBlind += (await names(blind, name)).filter((found) => found === name).length;
        },
        () => names(b, name),
      );
      expect(created).toContain(name);

      const renamed = await whileLate(
        () => rename(id, `${name}-renamed`),
        () => get(b, `/v1/project/${id}`),
      );
      expect(renamed.json()).toMatchObject({ data: { id, name: `${name}-renamed` } });

      const removed = await whileLate(
        () => remove(id),
        () => get(b, `/v1/project/${id}`),
      );
      expect(removed.statusCode, removed.body).toBe(404);
    }
    // The proxy does delay the events: without the published version, none of them is observed.
    expect(seenByTheBlind).toBe(0);
    const text = await metrics.registry.metrics();
    expect(Number(/outcome="seen"\} (\d+)/.exec(text)?.[1])).toBeGreaterThan(2.5 * ROUNDS);
    expect(text).not.toContain('outcome="timeout"');
  });

  it("does not delay the reads of other organizations, and those of its own for two seconds at most", async () => {
    await insertOrganization(ledger, { id: "other", name: "other" });
    const others = a.key("other", "* on project:*");
    proxy.stall(true);
    try {
      await create("held-up");
      const began = performance.now();
      const other = await b.inject({ method: "GET", url: "/v1/project", headers: others });
      expect(other.statusCode).toBe(200);
      expect(performance.now() - began).toBeLessThan(500);
      expect(await names(b, "held-up")).toEqual([]);
      const waited = performance.now() - began;
      expect(waited).toBeGreaterThan(1_900);
      expect(waited).toBeLessThan(3_000);
    } finally {
      proxy.stall(false);
    }
    expect(await metrics.registry.metrics()).toContain('outcome="timeout"} 1');
  });
});

describe("a rate limit", () => {
  // Shows: docs/applications.md#limits: exact over all replicas
  it("applies over both replicas, in headers and refusals alike", async () => {
    const strict = await startHarness(admin, {
      ledger,
      rateLimitScale: 1,
      shared: { rateLimiter: limiters[0] as ValkeyRateLimiter, writes: limiters[0] as ValkeyRateLimiter },
    });
    const second = buildApp({ ...strict.services, rateLimiter: limiters[1] as ValkeyRateLimiter });
    const own = strict.key(ORGANIZATION, "* on project:*");
    const answers = await Promise.all(
      Array.from({ length: 240 }, (_, index) =>
        (index % 2 === 0 ? strict.app : second).inject({ method: "GET", url: "/v1/project", headers: own }),
      ),
    );
    const refused = answers.filter(({ statusCode }) => statusCode === 429);
    expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(100);
    expect(refused).toHaveLength(140);
    for (const { headers: refusalHeaders } of refused) {
      expect(refusalHeaders["ratelimit-policy"]).toBe('"default";q=100;w=60');
      expect(refusalHeaders.ratelimit).toMatch(/^"default";r=0;t=(59|60)$/);
      expect(refusalHeaders["retry-after"]).toMatch(/^(59|60)$/);
    }
    await second.close();
    await strict.app.close();
    await strict.projects.stop();
  });
});
