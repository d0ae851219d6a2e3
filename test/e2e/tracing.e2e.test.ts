import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isLong } from "../kit/long.ts";
import { startTraceReceiver, type TraceReceiver } from "../kit/processes/trace-receiver.ts";
import { apiClient, type CreatedProject, deleteProjects, httpProject } from "./support/api.ts";
import { auditPosition, writesSince } from "./support/audit.ts";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { operatorAccount, systemNamespace } from "./support/operator.ts";
import { setApiServer, setOperator } from "./support/operator-settings.ts";
import { stack } from "./support/stack.ts";

/** The node's address, where pods find what this machine serves. */
const HOST = "10.244.0.1";
const call = apiClient();
const policy = { namespace: systemNamespace, name: "traces-of-a-test" };
const ids: string[] = [];
const undo: (() => Promise<unknown>)[] = [];
let receiver: TraceReceiver;

beforeAll(async () => {
  receiver = await startTraceReceiver({ host: HOST });
  undo.push(() => receiver.stop());
  // As `networkPolicy.tracing` would.
  await cluster.networking.createNamespacedNetworkPolicy({
    namespace: systemNamespace,
    body: {
      metadata: { name: policy.name },
      spec: {
        podSelector: {},
        policyTypes: ["Egress"],
        egress: [
          {
            to: [{ ipBlock: { cidr: `${HOST}/32` } }],
            ports: [{ protocol: "TCP", port: Number(new URL(receiver.url).port) }],
          },
        ],
      },
    },
  });
  undo.push(() => cluster.networking.deleteNamespacedNetworkPolicy(policy));
});

afterAll(async () => {
  await deleteProjects(call, ids);
  for (const one of undo.reverse()) {
    await one();
  }
}, 300_000);

async function running(name: string): Promise<string> {
  const created = await call<CreatedProject>("POST", "/v1/project", httpProject(name));
  expect(created.status).toBe(201);
  const id = (created.body.data as CreatedProject).project_id;
  ids.push(id);
  await eventually(
    async () => {
      const read = await call<{ status: string }>("GET", `/v1/project/${id}`);
      expect(read.body.data?.status).toBe("running");
    },
    { within: 120_000 },
  );
  return id;
}

/** What a rollout would change. */
async function rollout(id: string) {
  const namespace = `slipway-org-${stack.organization}`;
  const { metadata, spec } = await cluster.apps.readNamespacedDeployment({ namespace, name: id });
  const pods = await cluster.core.listNamespacedPod({
    namespace,
    labelSelector: `slipway.dev/project=${id}`,
  });
  return {
    generation: metadata?.generation,
    template: spec?.template,
    pods: pods.items.map((pod) => pod.metadata?.uid).sort(),
  };
}

// Shows: docs/operations/tracing.md#when-the-receiver-is-unavailable: tracing that is switched on changes no
test.skipIf(!isLong)(
  "switched on while projects run, follows a change to the operator and rolls nothing out (--long)",
  async () => {
    const id = await running("traced");
    const before = await rollout(id);
    const settings = { SLIPWAY_OTLP_TRACES_URL: receiver.url };
    const restores = await Promise.all([setOperator(settings), setApiServer(settings)]);
    undo.push(() => Promise.all(restores.map((restore) => restore())));

    const changed = await call("PATCH", `/v1/project/${id}/name`, { name: "renamed" });
    expect(changed.status).toBe(200);
    const request = await eventually(() => {
      const found = receiver.spans.find(({ name }) => name === "PATCH /v1/project/:id/name");
      expect(found?.attributes["http.response.status_code"]).toBe(200);
      return Promise.resolve(found);
    });
    const reconcile = await eventually(() => {
      const found = receiver.spans.find(
        ({ name, traceId }) => name === "project" && traceId === request?.traceId,
      );
      expect(found).toMatchObject({ service: "slipway-operator", parentSpanId: request?.spanId });
      return Promise.resolve(found);
    });
    expect(reconcile?.attributes).toMatchObject({ "slipway.object.name": id, "slipway.outcome": "success" });
    expect(await rollout(id)).toEqual(before);

    const second = await running("traced-new");
    await eventually(() => {
      const created = receiver.spans.find(
        ({ name, attributes }) => name === "POST /v1/project" && attributes["slipway.project"] === second,
      );
      const trace = receiver.spans.filter(({ traceId }) => traceId === created?.traceId);
      expect(trace.map(({ name }) => name)).toContain("project");
      return Promise.resolve();
    });

    // At rest: no writes, and no spans.
    await eventually(
      async () => {
        const start = await auditPosition();
        const spans = receiver.spans.length;
        await sleep(10_000);
        expect(await writesSince(start, operatorAccount)).toEqual([]);
        expect(receiver.spans.slice(spans).map(({ name }) => name)).toEqual([]);
      },
      { within: 90_000 },
    );
  },
  420_000,
);
