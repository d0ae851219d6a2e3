import type { Store } from "@slipway/analytics";
import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { type LogDrain, organizationNamespace } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { statusAndCode } from "../../../test/kit/api-server/status-and-code.ts";
import { Analytics } from "../analytics/analytics.ts";
import { buildApp } from "../app.ts";
import { logDrainResource, projectResource } from "../resources.ts";

const ORGANIZATION = "drains";
const namespace = organizationNamespace(ORGANIZATION);
const DRAINS = "/v1/organization/log-drains";
const TOKEN = "Bearer secret-token";

let harness: FakeHarness;
beforeAll(async () => {
  // Nothing here reads the store.
  harness = await startFakeHarness({ analytics: new Analytics({} as Store) });
  await harness.namespace(ORGANIZATION);
  await harness.namespace("others");
  await harness.project(ORGANIZATION, "pshop");
});
afterAll(() => harness.close());

const everything = () => harness.key(ORGANIZATION, "* on organization:*", "* on project:*");
const send = (
  method: "GET" | "POST" | "PATCH" | "DELETE",
  url: string,
  body?: object,
  headers = everything(),
) => harness.app.inject({ method, url, headers, ...(body === undefined ? {} : { payload: body }) });

const OTLP = {
  name: "Observability",
  otlp_http: { endpoint: "https://otlp.example.com" },
  headers: [{ name: "Authorization", value: TOKEN }],
};
async function create(body: object = OTLP): Promise<string> {
  const answer = await send("POST", DRAINS, body);
  expect(statusAndCode(answer)).toEqual([201, undefined]);
  return answer.json().data.id;
}
const drainOf = (id: string) => harness.kube.get<LogDrain>(logDrainResource, { namespace, name: id });
const secretsOf = async (id: string) =>
  (
    await harness.kube.listAll<KubernetesObject & { data: Record<string, string> }>(resources.secrets, {
      namespace,
    })
  ).filter(({ metadata }) => metadata?.labels?.["slipway.dev/log-drain"] === id);
/** The one that the drain names: no other is left. */
const secretOf = async (id: string) => {
  const [secret, ...others] = await secretsOf(id);
  expect(others).toEqual([]);
  expect((await drainOf(id)).spec.secretRef?.name).toBe(secret?.metadata?.name);
  return secret;
};
const encoded = (text: string) => Buffer.from(text).toString("base64");

describe("a log drain", () => {
  // Shows: docs/log-drains.md#over-v1: `POST /v1/organization/log-drains` | 201
  // Shows: docs/log-drains.md#over-v1: `GET /v1/organization/log-drains/:drainId` | one
  it("is created with its credentials in a Secret of its own, which are never shown", async () => {
    const answer = await send("POST", DRAINS, { ...OTLP, project_id: "pshop" });
    expect(answer.statusCode).toBe(201);
    const { id, ...shown } = answer.json().data;
    expect(id).toMatch(/^l[a-z0-9]{19}$/);
    expect(shown).toMatchObject({
      project_id: "pshop",
      has_credentials: true,
      status: "pending",
      lag_seconds: 0,
    });
    const [secret, drain] = [await secretOf(id), await drainOf(id)];
    expect(secret?.data).toEqual({ "header.Authorization": encoded(TOKEN) });
    expect(secret?.metadata?.ownerReferences).toMatchObject([{ kind: "LogDrain", uid: drain.metadata.uid }]);
    const read = await send("GET", `${DRAINS}/${id}`);
    for (const text of [answer.body, read.body, JSON.stringify(drain)]) {
      expect(text).not.toContain("secret-token");
    }
  });

  it("of syslog without credentials has no Secret, and the usual port", async () => {
    const id = await create({ name: "Archive", syslog: { host: "logs.example.com" } });
    expect((await drainOf(id)).spec).toEqual({
      displayName: "Archive",
      syslog: { host: "logs.example.com", port: 6514 },
    });
    expect(await secretsOf(id)).toEqual([]);
  });

  // Shows: docs/log-drains.md#over-v1: `GET /v1/organization/log-drains` | all
  // Shows: docs/log-drains.md#over-v1: 404 `LOG_DRAIN_NOT_FOUND`
  it("is listed with what becomes of its lines, and not to another organization", async () => {
    const id = await create();
    const status = {
      conditions: [
        {
          type: "Ready",
          status: "True",
          reason: "Configured",
          message: "",
          lastTransitionTime: "2026-11-29T12:00:00Z",
        },
        {
          ...{ type: "Delivering", status: "False", reason: "ReceiverUnavailable" },
          ...{ message: "the receiver answers with 503", lastTransitionTime: "2026-11-29T12:00:00Z" },
        },
      ],
      ...{ lagSeconds: 120, refusedLines: 3 },
    };
    await harness.kube.updateStatus(logDrainResource, { ...(await drainOf(id)), status } as never);
    const listed = (await send("GET", DRAINS)).json().data.log_drains as { id: string }[];
    expect(listed.find((one) => one.id === id)).toMatchObject({
      ...{ status: "failing", message: "the receiver answers with 503" },
      ...{ lag_seconds: 120, refused_lines: 3, skipped_lines: 0 },
    });
    const others = harness.key("others", "* on organization:*");
    expect((await send("GET", DRAINS, undefined, others)).json().data.log_drains).toEqual([]);
    expect(statusAndCode(await send("GET", `${DRAINS}/${id}`, undefined, others))).toEqual([
      404,
      "LOG_DRAIN_NOT_FOUND",
    ]);
  });

  // Shows: docs/log-drains.md#over-v1: `PATCH /v1/organization/log-drains/:drainId` | what is absent
  it("gets other headers in one write, and keeps what is not sent", async () => {
    const id = await create();
    const body = { name: "Other", headers: [{ name: "X-Token", value: "other" }] };
    expect((await send("PATCH", `${DRAINS}/${id}`, body)).statusCode).toBe(200);
    expect((await secretOf(id))?.data).toEqual({ "header.X-Token": encoded("other") });
    expect((await drainOf(id)).spec).toMatchObject({ displayName: "Other", otlpHttp: OTLP.otlp_http });
  });

  it("gets its first credentials, and loses its authorities", async () => {
    const pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----";
    const id = await create({ name: "Archive", syslog: { host: "logs.example.com", port: 6514 }, ca: pem });
    const key = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----";
    const body = { ca: null, client_certificate: { certificate: pem, key } };
    expect((await send("PATCH", `${DRAINS}/${id}`, body)).statusCode).toBe(200);
    expect((await secretOf(id))?.data).toEqual({ "tls.crt": encoded(pem), "tls.key": encoded(key) });
    expect((await drainOf(id)).spec.ca).toBeUndefined();
  });

  it.each([
    ["no receiver", { name: "x" }],
    ["two receivers", { ...OTLP, syslog: { host: "a.example.com", port: 6514 } }],
    ["plain HTTP", { name: "x", otlp_http: { endpoint: "http://otlp.example.com" } }],
    ["headers of syslog", { name: "x", syslog: { host: "a.example.com" }, headers: OTLP.headers }],
    ["a header of the platform's own", { ...OTLP, headers: [{ name: "Content-Length", value: "1" }] }],
    ["a line break in a header", { ...OTLP, headers: [{ name: "X-A", value: "a\r\nHost: b" }] }],
    ["a header twice", { ...OTLP, headers: [...OTLP.headers, { name: "authorization", value: "x" }] }],
  ])("with %s is refused", async (_, body) => {
    expect(statusAndCode(await send("POST", DRAINS, body))).toEqual([400, "VALIDATION_FAILED"]);
  });

  // Shows: docs/log-drains.md#over-v1: 404 `PROJECT_NOT_FOUND`: a project
  it("of a project that is not there, or whose logs the caller may not read, is refused as not found", async () => {
    const of = (project_id: string, headers = everything()) =>
      send("POST", DRAINS, { ...OTLP, project_id }, headers);
    expect(statusAndCode(await of("pnone"))).toEqual([404, "PROJECT_NOT_FOUND"]);
    const reader = harness.key(ORGANIZATION, "* on organization:*", "project.logs.read on project:pother");
    expect(statusAndCode(await of("pshop", reader))).toEqual([404, "PROJECT_NOT_FOUND"]);
  });

  // Shows: docs/log-drains.md#over-v1: 400 `LOG_DRAIN_PROJECT`: a job
  it("of a job is refused", async () => {
    const job = { metadata: { namespace, name: "pjob" }, spec: { type: "job" } };
    await harness.kube.create(projectResource, job as never);
    const answer = await send("POST", DRAINS, { ...OTLP, project_id: "pjob" });
    expect(statusAndCode(answer)).toEqual([400, "LOG_DRAIN_PROJECT"]);
    await harness.kube.delete(projectResource, { namespace, name: "pjob" });
  });

  // Shows: docs/log-drains.md#over-v1: 403 `PERMISSION_DENIED`: lines of all
  it("is created and changed by those who may read its lines", async () => {
    const all = harness.key(ORGANIZATION, "* on organization:*", "project.logs.read on project:pshop");
    expect(statusAndCode(await send("POST", DRAINS, OTLP, all))).toEqual([403, "PERMISSION_DENIED"]);
    const answer = await send("POST", DRAINS, { ...OTLP, project_id: "pshop" }, all);
    expect(answer.statusCode).toBe(201);
    const one = `${DRAINS}/${answer.json().data.id}`;
    expect((await send("PATCH", one, { name: "Other" }, all)).statusCode).toBe(200);
    const none = harness.key(ORGANIZATION, "* on organization:*");
    expect(statusAndCode(await send("PATCH", one, { name: "x" }, none))).toEqual([404, "PROJECT_NOT_FOUND"]);
    expect(statusAndCode(await send("PATCH", `${DRAINS}/${await create()}`, { name: "x" }, all))).toEqual([
      403,
      "PERMISSION_DENIED",
    ]);
  });

  // Shows: docs/log-drains.md#over-v1: 400 `LOG_DRAIN_CREDENTIALS`: another receiver
  it("sends its credentials to no other receiver", async () => {
    const id = await create();
    const elsewhere = { otlp_http: { endpoint: "https://attacker.example.com" } };
    for (const body of [elsewhere, { ...elsewhere, client_certificate: null }]) {
      const answer = await send("PATCH", `${DRAINS}/${id}`, body);
      expect(answer.json()).toMatchObject({ code: "LOG_DRAIN_CREDENTIALS", errors: [{ field: "headers" }] });
    }
    expect((await drainOf(id)).spec.otlpHttp).toEqual(OTLP.otlp_http);
    const path = { otlp_http: { endpoint: "https://otlp.example.com/tenant" } };
    expect((await send("PATCH", `${DRAINS}/${id}`, path)).statusCode).toBe(200);
    expect((await send("PATCH", `${DRAINS}/${id}`, { ...elsewhere, headers: [] })).statusCode).toBe(200);
    expect((await drainOf(id)).spec).toMatchObject({ otlpHttp: elsewhere.otlp_http });
    expect(await secretsOf(id)).toEqual([]);
    expect((await send("GET", `${DRAINS}/${id}`)).json().data.has_credentials).toBe(false);
    expect((await send("PATCH", `${DRAINS}/${id}`, { otlp_http: OTLP.otlp_http })).statusCode).toBe(200);
  });

  it("is changed although its status is written meanwhile, and is not written when nothing changes", async () => {
    const id = await create();
    const before = (await drainOf(id)).metadata;
    expect((await send("PATCH", `${DRAINS}/${id}`, { name: OTLP.name })).statusCode).toBe(200);
    expect((await drainOf(id)).metadata.resourceVersion).toBe(before.resourceVersion);
    const writing = (async () => {
      for (let seconds = 0; seconds < 3; seconds += 1) {
        const status = { lagSeconds: 60 * seconds };
        await harness.kube
          .updateStatus(logDrainResource, { ...(await drainOf(id)), status } as never)
          .catch(() => {});
      }
    })();
    const headers = [{ name: "X-Token", value: "other" }];
    expect((await send("PATCH", `${DRAINS}/${id}`, { headers })).statusCode).toBe(200);
    await writing;
    expect((await secretOf(id))?.data).toEqual({ "header.X-Token": encoded("other") });
  });

  // Shows: docs/log-drains.md#over-v1: 400 `LOG_DRAIN_KIND`: members
  it("stays one of OTLP or of syslog", async () => {
    const body = { syslog: { host: "a.example.com", port: 1 } };
    const answer = await send("PATCH", `${DRAINS}/${await create()}`, body);
    expect(answer.json()).toMatchObject({ code: "LOG_DRAIN_KIND", errors: [{ field: "syslog" }] });
  });

  // Shows: docs/log-drains.md#over-v1: 409 `LOG_DRAIN_EXTERNAL`: credentials
  it("whose Secret others write gets no credentials here", async () => {
    const spec = { displayName: "x", otlpHttp: OTLP.otlp_http, secretRef: { name: "vault" } };
    await harness.kube.create(logDrainResource, { metadata: { namespace, name: "external" }, spec } as never);
    const answer = await send("PATCH", `${DRAINS}/external`, { headers: OTLP.headers });
    expect(statusAndCode(answer)).toEqual([409, "LOG_DRAIN_EXTERNAL"]);
    expect((await send("PATCH", `${DRAINS}/external`, { name: "Other" })).statusCode).toBe(200);
  });

  it("whose own Secret was lost gets another", async () => {
    const id = await create();
    const name = (await drainOf(id)).spec.secretRef?.name ?? "";
    await harness.kube.delete(resources.secrets, { namespace, name });
    expect((await send("PATCH", `${DRAINS}/${id}`, { headers: OTLP.headers })).statusCode).toBe(200);
    expect((await secretOf(id))?.data).toEqual({ "header.Authorization": encoded(TOKEN) });
  });

  // Shows: docs/log-drains.md#over-v1: `DELETE /v1/organization/log-drains/:drainId` | what
  it("is deleted", async () => {
    const id = await create();
    expect((await send("DELETE", `${DRAINS}/${id}`)).statusCode).toBe(200);
    expect(statusAndCode(await send("GET", `${DRAINS}/${id}`))).toEqual([404, "LOG_DRAIN_NOT_FOUND"]);
    expect((await send("DELETE", `${DRAINS}/${id}`)).statusCode).toBe(404);
  });

  // Shows: docs/log-drains.md#over-v1: 503 `ANALYTICS_NOT_CONFIGURED`: the platform keeps no logs
  it("is not created where the platform keeps no logs", async () => {
    const app = buildApp({ ...harness.services, analytics: new Analytics(undefined) });
    const answer = await app.inject({ method: "POST", url: DRAINS, headers: everything(), payload: OTLP });
    expect(statusAndCode(answer)).toEqual([503, "ANALYTICS_NOT_CONFIGURED"]);
    await app.close();
  });
});
