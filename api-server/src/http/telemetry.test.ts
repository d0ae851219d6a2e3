import { KubeClient, resources } from "@slipway/controller-runtime";
import { annotations, type Project } from "@slipway/crds";
import { openTracing, parseTraceparent, type Tracing } from "@slipway/process/tracing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { startTraceReceiver, type TraceReceiver } from "../../../test/kit/processes/trace-receiver.ts";
import { projectResource } from "../resources.ts";
import { traceWrites } from "./telemetry.ts";

const log = { info: () => {}, warn: () => {} };
const NAMESPACE = "slipway-org-acme";
/** What a client says to be sampled by. */
const STRANGER = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;

async function open(url: string, ratio: number): Promise<Tracing> {
  const tracing = await openTracing({ url, ratio }, { service: "api", instance: "one", log });
  if (!tracing) {
    throw new Error("tracing is off");
  }
  return tracing;
}

let receiver: TraceReceiver;
let tracing: Tracing;
let harness: FakeHarness;
let headers: Record<string, string>;

beforeAll(async () => {
  receiver = await startTraceReceiver();
  tracing = await open(receiver.url, 1);
  harness = await startFakeHarness({ tracing });
  headers = harness.key("acme", "* on organization:*", "* on project:*");
  await harness.namespace("acme");
});
afterAll(async () => {
  await harness.close();
  await tracing.close();
  await receiver.stop();
});
beforeEach(() => {
  receiver.spans.length = 0;
});

/** The spans of the next requests: those of `/v1`, once there are so many. */
async function servers(count: number) {
  const found = () => receiver.spans.filter(({ kind }) => kind === 2);
  await eventually(`${count} spans`, () => found().length >= count, 10_000);
  return found();
}

const live = (id: string): Promise<Project> =>
  harness.kube.get<Project>(projectResource, { namespace: NAMESPACE, name: id });

describe("a traced request", () => {
  // Shows: docs/operations/tracing.md#when-the-receiver-is-unavailable: spans hold no secrets, and answers no
  it("has a span named by its route, with the outcome and without what the client wrote", async () => {
    await harness.project("acme", "ptraced");
    const url = "/v1/project/ptraced?secret=s3cr3t";
    const { body } = await harness.app.inject({ url: "/v1/project/ptraced", headers });
    await harness.app.inject({ url, headers: { ...headers, "user-agent": "s3cr3t-agent" } });
    await harness.app.inject({ method: "POST", url: "/v1/nowhere/s3cr3t" });
    await harness.app.inject({ url: "/v1/project/pnone", headers });
    const spans = await servers(4);
    expect(spans.map(({ name }) => name)).toContain("GET /v1/project/:id");
    expect(spans[0]).toMatchObject({ parentSpanId: "", links: [], failed: false });
    expect(spans[0]?.attributes).toMatchObject({
      "http.request.method": "GET",
      "http.route": "/v1/project/:id",
      "http.response.status_code": 200,
      "slipway.organization": "acme",
      "slipway.project": "ptraced",
      "slipway.operation": "readProject",
      "slipway.request_id": expect.any(String),
    });
    const unknown = spans.find(({ name }) => name === "POST");
    expect(unknown?.attributes).toMatchObject({ "http.response.status_code": 404 });
    expect(unknown?.failed).toBe(false);
    expect(spans.at(-1)?.attributes["slipway.failure_code"]).toBe("PROJECT_NOT_FOUND");
    expect(receiver.text()).not.toContain("s3cr3t");
    expect(receiver.text()).not.toContain(headers["x-api-key"]);
    expect(body).not.toContain("traceparent");
  });

  // Shows: docs/operations/tracing.md#when-the-receiver-is-unavailable: a client cannot force sampling
  it("begins a trace of its own whatever the client says, which becomes a link", async () => {
    const linked = { ...headers, traceparent: STRANGER };
    await harness.app.inject({ url: "/v1/project", headers: linked });
    await harness.app.inject({ url: "/v1/project", headers: { ...headers, traceparent: "00-zz" } });
    const [first, second] = await servers(2);
    expect(first?.traceId).not.toBe("a".repeat(32));
    expect(first?.links).toEqual([`${"a".repeat(32)}-${"b".repeat(16)}`]);
    expect(second?.links).toEqual([]);
  });

  // Shows: docs/operations/tracing.md#when-the-receiver-is-unavailable: spans hold no secrets, and answers no
  it("writes its name on what it writes, and its calls to Kubernetes are its children; no answer shows it", async () => {
    await harness.project("acme", "pwritten");
    const url = "/v1/project/pwritten/name";
    const change = { method: "PATCH", url, headers, payload: { name: "other-name" } } as const;
    const changed = await harness.app.inject(change);
    expect(changed.statusCode).toBe(200);
    const [span] = await servers(1);
    const written = await live("pwritten");
    expect(parseTraceparent(written.metadata.annotations?.[annotations.traceparent])).toEqual({
      traceId: span?.traceId,
      spanId: span?.spanId,
      sampled: true,
    });
    const path = "/apis/slipway.dev/v1alpha1/namespaces/{namespace}/projects/{name}";
    const children = receiver.spans.filter(({ kind }) => kind === 3);
    expect(children.map(({ name }) => name)).toEqual([
      `GET ${path}`,
      // Its default domain is claimed with the first change.
      "POST /apis/slipway.dev/v1alpha1/domainclaims",
      `PATCH ${path}`,
    ]);
    expect(children.every(({ parentSpanId }) => parentSpanId === span?.spanId)).toBe(true);

    // The same again changes nothing, and is not written for the sake of its trace.
    const again = await harness.app.inject(change);
    expect(again.statusCode).toBe(200);
    expect((await live("pwritten")).metadata.resourceVersion).toBe(written.metadata.resourceVersion);
    const read = await harness.app.inject({ url: "/v1/project/pwritten", headers });
    const list = await harness.app.inject({ url: "/v1/project", headers });
    for (const answer of [changed, again, read, list]) {
      expect(answer.statusCode).toBe(200);
      expect(answer.body).not.toContain("traceparent");
    }
  });

  it("leaves objects that are not the platform's own alone", () => {
    const write = traceWrites(tracing);
    expect(write(resources.secrets)).toBeUndefined();
    expect(write(projectResource)).toEqual({ [annotations.traceparent]: null });
  });
});

describe("a request that is not sampled", () => {
  // Shows: docs/operations/tracing.md#when-the-receiver-is-unavailable: a client cannot force sampling
  it("leaves no span, whatever the client says, and removes an earlier trace from what it writes", async () => {
    const unheard = await startTraceReceiver();
    const none = await open(unheard.url, 0);
    const quiet = await startFakeHarness({ tracing: none });
    try {
      const key = quiet.key("acme", "* on organization:*", "* on project:*");
      await quiet.namespace("acme");
      const traced = { ...key, traceparent: STRANGER };
      const project = await quiet.project("acme", "pquiet");
      const ref = { namespace: NAMESPACE, name: "pquiet" };
      const before = KubeClient.forUrl(quiet.apiserver.url, {
        annotate: () => ({ [annotations.traceparent]: STRANGER }),
      });
      await before.patch(projectResource, ref, { metadata: { uid: project.metadata.uid } });
      await before.close();
      const url = "/v1/project/pquiet/name";
      const changed = await quiet.app.inject({
        method: "PATCH",
        url,
        headers: traced,
        payload: { name: "renamed" },
      });
      expect(changed.statusCode).toBe(200);
      const after = await quiet.kube.get<Project>(projectResource, ref);
      expect(after.spec.name).toBe("renamed");
      expect(after.metadata.annotations?.[annotations.traceparent]).toBeUndefined();
    } finally {
      await quiet.close();
      await none.close();
      await unheard.stop();
    }
    expect(unheard.spans).toEqual([]);
  });
});
