import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KubeClient, resources } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { annotations, organizationNamespace, type Project } from "@slipway/crds";
import { connectLedger, insertApiKey, insertOrganization, migrateToLatest } from "@slipway/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { generateApiKey } from "../api-server/src/auth/credentials.ts";
import type { TestApiserver } from "../hack/cluster/apiserver.ts";
import { root } from "../hack/lib/paths.ts";
import { freePorts } from "../hack/lib/ports.ts";
import { countQuotas } from "./kit/clusters/quotas.ts";
import { acquireApiserver } from "./kit/clusters/shared-apiserver.ts";
import { eventually } from "./kit/processes/eventually.ts";
import { projectResource } from "./kit/processes/job-platform.ts";
import { startNode, writeTokenKey } from "./kit/processes/node.ts";
import { OperatorProcess } from "./kit/processes/operator-process.ts";
import { type ReceivedSpan, startTraceReceiver, type TraceReceiver } from "./kit/processes/trace-receiver.ts";
import { startPostgres, type TestPostgres } from "./kit/servers/postgresql.ts";

/** Both processes as they run in pods, a real apiserver, a real ledger, and a receiver of traces. */

const dir = mkdtempSync(join(tmpdir(), "slipway-tracing-"));
const NAMESPACE = organizationNamespace("acme");
/** Writes down every module of OpenTelemetry that a process loads, but for its interfaces, which others depend on. */
const SPY = join(dir, "spy.mjs");
const STRANGER = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;

let apiserver: TestApiserver;
let postgres: TestPostgres;
let receiver: TraceReceiver;
let client: KubeClient;
let stopCounting: () => Promise<void>;
let operator: OperatorProcess;
let key: string;
let api: string;
let ops: string;
let port: number;
let metricsPort: number;

beforeAll(async () => {
  [apiserver, postgres, receiver] = await Promise.all([
    acquireApiserver(),
    startPostgres(),
    startTraceReceiver(),
  ]);
  client = KubeClient.fromConfig(loadKubeConfig({ file: apiserver.kubeconfig }));
  const ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(ledger);
  await insertOrganization(ledger, { id: "acme", name: "Acme" });
  const generated = generateApiKey();
  key = generated.key;
  await insertApiKey(ledger, {
    id: generated.id,
    organizationId: "acme",
    prefix: "slw",
    sha256: generated.sha256,
    grants: [
      { permission: "*", resource: "organization:*" },
      { permission: "*", resource: "project:*" },
    ],
  });
  await ledger.destroy();
  await client.create(resources.namespaces, { metadata: { name: "slipway-system" } });
  stopCounting = countQuotas(client);
  writeTokenKey(join(dir, "token.pem"));
  writeFileSync(
    SPY,
    `import { appendFileSync } from "node:fs";
import { registerHooks } from "node:module";
registerHooks({
  load(url, context, next) {
    if (/@opentelemetry\\/(?!api\\/)/.test(url)) appendFileSync(process.env.SPY_FILE, url + "\\n");
    return next(url, context);
  },
});
`,
  );
  const [first = 0, second = 0] = await freePorts(2);
  [port, metricsPort] = [first, second];
  api = `http://127.0.0.1:${port}`;
  ops = `http://127.0.0.1:${metricsPort}`;
}, 240_000);

afterAll(async () => {
  await operator?.stop();
  await stopCounting?.();
  await client?.close();
  await receiver?.stop();
  await postgres?.stop();
  await apiserver?.stop();
  rmSync(dir, { recursive: true, force: true });
});

const spying = (name: string) => ({
  NODE_OPTIONS: `--import=${SPY}`,
  SPY_FILE: join(dir, `${name}.modules`),
});

function modulesOf(name: string): string {
  try {
    return readFileSync(join(dir, `${name}.modules`), "utf8");
  } catch {
    return "";
  }
}

function operatorWith(identity: string, env: Record<string, string>): OperatorProcess {
  const { kubeconfig } = apiserver;
  return new OperatorProcess({
    kubeconfig,
    ledgerUrl: postgres.url,
    // Of one name: each takes the lease over at once.
    identity: "slipway-operator-0",
    dir,
    env: { ...spying(identity), ...env },
  });
}

/** The API server, until `work` is done; ended in order. Returns how long its end took, in milliseconds. */
async function withApi(
  name: string,
  env: Record<string, string>,
  work: () => Promise<void>,
): Promise<number> {
  const log = openSync(join(dir, `${name}.log`), "a");
  const settings = {
    SLIPWAY_LEDGER_URL: postgres.url,
    SLIPWAY_CATALOG_FILE: join(root, "charts/slipway/files/catalog.yaml"),
    SLIPWAY_TOKEN_KEY_FILE: join(dir, "token.pem"),
    SLIPWAY_RATE_LIMIT_SCALE: "1000000",
    SLIPWAY_LISTEN_ADDRESS: "127.0.0.1",
    SLIPWAY_PORT: String(port),
    SLIPWAY_METRICS_PORT: String(metricsPort),
    SLIPWAY_DRAIN_SECONDS: "0",
    KUBECONFIG: apiserver.kubeconfig,
    ...spying(name),
    ...env,
  };
  const child = startNode("api-server/src/main.ts", [], settings, log);
  closeSync(log);
  const exited = once(child, "exit");
  try {
    const ready = () =>
      fetch(`${ops}/readyz`).then(
        ({ status }) => status === 200,
        () => false,
      );
    await eventually("readiness", ready, 60_000);
    await work();
  } finally {
    child.kill("SIGTERM");
  }
  const before = performance.now();
  expect(await exited).toEqual([0, null]);
  return performance.now() - before;
}

async function call(
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; text: string; data: Record<string, unknown> }> {
  const response = await fetch(`${api}${path}`, {
    method,
    headers: {
      "x-api-key": key,
      traceparent: STRANGER,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await response.text();
  return {
    status: response.status,
    text,
    data: (JSON.parse(text) as { data?: Record<string, unknown> }).data ?? {},
  };
}

const body = {
  name: "traced",
  plan: "basic",
  payment_mode: "hourly",
  config: {
    type_project: "http",
    exposure: "public",
    image: { url: "registry.example.com/shop:1", is_public: true },
    port: 8080,
    instances: 1,
    storage: { persistent: false, capacity: 1 },
    envs: [{ name: "KEY", value: "s3cr3t-value" }],
    network_access: { ingress_white_list: [{ cidr: "0.0.0.0/0", description: "everybody" }] },
  },
};

/** The guards that the operator gives an organization's namespace: until then nothing can be created. */
async function guarded(): Promise<void> {
  await eventually(
    "the organization's namespace",
    async () => {
      const found = await client.getOrUndefined(resources.namespaces, { name: NAMESPACE });
      return found?.metadata?.annotations?.[annotations.guarded] !== undefined;
    },
    120_000,
  );
}

const live = (id: string): Promise<Project> =>
  client.get<Project>(projectResource, { namespace: NAMESPACE, name: id });

async function observed(id: string): Promise<Project> {
  let project = await live(id);
  await eventually(
    "the operator to have acted",
    async () => {
      project = await live(id);
      return project.status?.observedGeneration === project.metadata.generation;
    },
    60_000,
  );
  return project;
}

/** The Deployment of a project. */
const deploymentOf = (name: string) => client.get(resources.deployments, { namespace: NAMESPACE, name });
/** As it was before any process had tracing. */
let untraced: Awaited<ReturnType<typeof deploymentOf>>;

const named = (name: string): ReceivedSpan[] => receiver.spans.filter((span) => span.name === name);

describe("tracing that is off", () => {
  // Shows: docs/operations/tracing.md#when-the-receiver-is-unavailable: disabled, it loads nothing
  it("loads none of OpenTelemetry's packages, annotates nothing and sends nothing", async () => {
    operator = operatorWith("operator-off", {});
    operator.start();
    await guarded();
    let id = "";
    await withApi("api-off", {}, async () => {
      const created = await call("POST", "/v1/project", body);
      expect(created.status).toBe(201);
      id = String(created.data.project_id);
      await observed(id);
    });
    await operator.stop();
    expect((await live(id)).metadata.annotations?.[annotations.traceparent]).toBeUndefined();
    untraced = await deploymentOf(id);
    expect(modulesOf("api-off")).toBe("");
    expect(modulesOf("operator-off")).toBe("");
    expect(receiver.spans).toEqual([]);
  }, 240_000);
});

describe("a change through /v1", () => {
  // Shows: docs/operations/tracing.md#when-the-receiver-is-unavailable: one trace id from the request to the
  it("has one trace, from the request through what it writes to the reconcile and its writes", async () => {
    const env = { SLIPWAY_OTLP_TRACES_URL: receiver.url };
    operator = operatorWith("operator-on", env);
    operator.start();
    let id = "";
    const answers: string[] = [];
    await withApi("api-on", env, async () => {
      const created = await call("POST", "/v1/project", body);
      expect(created.status).toBe(201);
      answers.push(created.text);
      id = String(created.data.project_id);
      await observed(id);
      const changed = await call("PATCH", `/v1/project/${id}/name`, { name: "renamed" });
      expect(changed.status).toBe(200);
      const before = await observed(id);
      const again = await call("PATCH", `/v1/project/${id}/name`, { name: "renamed" });
      // Only the operator may have written since, and only its status.
      const { generation, annotations: noted } = (await live(id)).metadata;
      expect({ generation, noted }).toEqual({
        generation: before.metadata.generation,
        noted: before.metadata.annotations,
      });
      answers.push(changed.text, again.text, (await call("GET", `/v1/project/${id}`)).text);
      answers.push((await call("GET", "/v1/project")).text);
    });
    await eventually("both reconciles", () => named("project").length >= 2, 90_000);

    const [creation] = named("POST /v1/project");
    const [first, second] = named("project");
    expect(creation).toMatchObject({ service: "slipway-api-server", parentSpanId: "" });
    expect(creation?.links).toEqual([`${"a".repeat(32)}-${"b".repeat(16)}`]);
    expect(first).toMatchObject({
      service: "slipway-operator",
      traceId: creation?.traceId,
      parentSpanId: creation?.spanId,
      attributes: {
        "slipway.object.kind": "Project",
        "slipway.object.name": id,
        "slipway.object.generation": 2,
      },
    });
    // What the reconcile wrote is part of it; what it only read is not.
    const writes = receiver.spans.filter(({ parentSpanId }) => parentSpanId === first?.spanId);
    expect(writes.map(({ name }) => name)).toContain(
      "PATCH /apis/apps/v1/namespaces/{namespace}/deployments/{name}",
    );
    expect(
      writes.every(({ traceId, name }) => traceId === creation?.traceId && !name.startsWith("GET")),
    ).toBe(true);
    // Its claim is traced by a controller of its own, in the same trace.
    expect(named("domainclaim").map(({ traceId }) => traceId)).toContain(creation?.traceId);

    const [change] = named("PATCH /v1/project/:id/name");
    expect(second).toMatchObject({ traceId: change?.traceId, parentSpanId: change?.spanId });
    expect(second?.attributes["slipway.object.generation"]).toBe((await live(id)).metadata.generation);
    expect(named("PATCH /v1/project/:id/name")).toHaveLength(2);

    for (const text of [...answers, receiver.text()]) {
      expect(text).not.toContain("s3cr3t-value");
    }
    for (const text of answers) {
      expect(text).not.toContain("traceparent");
    }
    expect(receiver.text()).not.toContain(key);
    // Nothing of it reaches what the project is made of.
    expect(JSON.stringify(await deploymentOf(id))).not.toContain("traceparent");
    expect(modulesOf("api-on")).toContain("@opentelemetry/sdk-trace");
  }, 240_000);

  // Shows: docs/operations/tracing.md#when-the-receiver-is-unavailable: an operator with nothing to
  // Shows: docs/operations/tracing.md#when-the-receiver-is-unavailable: tracing that is switched on changes no
  it("leaves no span of what is acted on already, neither while the operator rests nor when it starts again", async () => {
    const reconciles = () =>
      receiver.spans.filter(({ service, kind }) => service === "slipway-operator" && kind !== 3).length;
    // In order: what it still has to send is sent.
    await operator.stop();
    const before = reconciles();
    const again = operatorWith("operator-again", { SLIPWAY_OTLP_TRACES_URL: receiver.url });
    operator = again;
    again.start();
    // What is new is acted on after what was there: then all of that has been looked at.
    const [some] = await client.listAll<Project>(projectResource, { namespace: NAMESPACE });
    if (!some) {
      throw new Error("there is no project");
    }
    await client.create<Project>(projectResource, {
      apiVersion: "slipway.dev/v1alpha1",
      kind: "Project",
      metadata: { namespace: NAMESPACE, name: "pbyhand" },
      spec: { ...some.spec, name: "by-hand", envsFrom: [] },
    });
    await observed("pbyhand");
    const ref = { namespace: NAMESPACE, name: some.metadata.name };
    await client.patch(projectResource, ref, { spec: { description: "by hand" } });
    await observed(some.metadata.name);
    await again.stop();
    expect(reconciles()).toBe(before);
    // Nor has what was there before tracing changed with it.
    expect(await deploymentOf(untraced.metadata?.name ?? "")).toEqual(untraced);
  }, 240_000);

  // Shows: docs/operations/tracing.md#when-the-receiver-is-unavailable: an unavailable receiver slows
  it("does as well when nobody takes its traces, and the processes end in time", async () => {
    const gone = await startTraceReceiver();
    await gone.stop();
    const env = { SLIPWAY_OTLP_TRACES_URL: gone.url };
    operator = operatorWith("operator-gone", env);
    operator.start();
    const took: number[] = [];
    const ended = await withApi("api-gone", env, async () => {
      const created = await call("POST", "/v1/project", { ...body, name: "unheard" });
      expect(created.status).toBe(201);
      const id = String(created.data.project_id);
      await observed(id);
      for (let index = 0; index < 300; index += 1) {
        const before = performance.now();
        expect((await call("GET", `/v1/project/${id}`)).status).toBe(200);
        took.push(performance.now() - before);
      }
    });
    expect(took.sort((a, b) => a - b)[150]).toBeLessThan(50);
    expect(ended).toBeLessThan(10_000);
    const before = performance.now();
    await operator.stop();
    expect(performance.now() - before).toBeLessThan(15_000);
  }, 240_000);
});
