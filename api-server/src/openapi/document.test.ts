import { Validator } from "@seriousme/openapi-schema-validator";
import { type Backup, labels, organizationNamespace, parseCreateProject } from "@slipway/crds";
import { sealRepositoryId } from "@slipway/git";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databaseSpec } from "../../../test/kit/api-server/databases.ts";
import { fakeGit, putConnection } from "../../../test/kit/api-server/git.ts";
import { type FakeHarness, repositoryIds, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { putGroup } from "../../../test/kit/operator/variable-groups.ts";
import { failures } from "../errors/catalog.ts";
import { checkCreation, withTemplate } from "../projects/creation/body.ts";
import { backupResource, logDrainResource } from "../resources.ts";
import { routes } from "../routes.ts";
import { examples, failureExamples } from "./examples.ts";

interface Media {
  schema: object;
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}
interface Operation {
  operationId: string;
  description: string;
  security: object[];
  parameters?: { name: string; in: string; schema: object; example?: unknown }[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, { $ref?: string; headers?: object; content?: Record<string, Media> }>;
}
interface Document {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas: Record<string, object>;
    responses: Record<string, { content: Record<string, Media> }>;
  };
}

const documented = routes.filter((route) => !route.undocumented);
let harness: FakeHarness;
let document: Document;
let operations: Operation[];
let ajv: Ajv2020;

beforeAll(async () => {
  harness = await startFakeHarness({ git: fakeGit() });
  document = (await harness.app.inject("/v1/openapi.json")).json();
  operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  ajv = new Ajv2020({ strict: false, validateFormats: false });
});
afterAll(() => harness.close());

/** What a value breaks of a schema, in words; empty when it fits. */
function problems(schema: object, value: unknown): string {
  const failure = document.components.schemas.Failure as object;
  const isFailure = "$ref" in schema && schema.$ref === "#/components/schemas/Failure";
  const check: ValidateFunction = ajv.compile(isFailure ? failure : schema);
  return check(value) ? "" : ajv.errorsText(check.errors);
}

const operation = (id: string): Operation => {
  const found = operations.find(({ operationId }) => operationId === id);
  if (!found) {
    throw new Error(`no operation ${id}`);
  }
  return found;
};

describe("the OpenAPI document", () => {
  // Shows: docs/applications.md#endpoints: `GET /v1/openapi.json` | the OpenAPI 3.1 document, of every
  it("is valid OpenAPI 3.1", async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(
      structuredClone(document) as unknown as Record<string, unknown>,
    );
    expect(errors ?? []).toEqual([]);
    expect(valid).toBe(true);
    expect(validator.version).toBe("3.1");
  });

  // Shows: docs/applications.md#endpoints: `GET /v1/openapi.json` | the OpenAPI 3.1 document, of every
  it("has every route and nothing that only Kubernetes reads", () => {
    const ids = operations.map(({ operationId }) => operationId).sort();
    expect(ids).toEqual(documented.map(({ operationId }) => operationId).sort());
    expect(JSON.stringify(document)).not.toContain("x-kubernetes");
  });

  it("says who may call an operation, how often, and what comes back", () => {
    const read = operation("readProject");
    expect(read.description).toContain("project.read on project:<project-id>");
    expect(read.description).toContain("At most 100 calls per minute, counted per source address.");
    expect(Object.keys(read.responses)).toEqual(["200", "400", "401", "403", "404", "429", "503"]);
    expect(operation("listHttpPlans").security).toEqual([]);
  });

  it("documents a WebSocket as an answer without a body, and its query's required parameter as one", () => {
    const { parameters, responses } = operation("execInstance");
    expect(responses["101"]).toEqual({ description: "The connection is a WebSocket, and the command runs." });
    // A command that the schema allows may be too long for an address.
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(["426", "431"]));
    const required = (parameters ?? []).filter((one) => (one as { required?: boolean }).required);
    expect(required.map(({ name }) => name).sort()).toEqual(["command", "id", "instance"]);
  });

  it("has patterns that every regular-expression engine reads alike", () => {
    const patterns = [...JSON.stringify(document).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)];
    expect(patterns.length).toBeGreaterThan(10);
    for (const [, pattern = ""] of patterns) {
      const text = JSON.parse(pattern) as string;
      expect(text).not.toMatch(/\\p\{/);
      expect(() => new RegExp(text, "u")).not.toThrow();
    }
  });
});

describe.each(documented)("$operationId", ({ operationId, body, documentedBody, responses }) => {
  // Shows: docs/applications.md#endpoints: `GET /v1/openapi.json` | the OpenAPI 3.1 document, of every
  it("has an example of every body and every success, each as its schema has it", () => {
    const { requests, responses: answers } = examples[operationId] ?? { responses: {} };
    const here = operation(operationId);
    if (body ?? documentedBody) {
      const media = here.requestBody?.content["application/json"];
      expect(Object.keys(requests ?? {})).not.toEqual([]);
      for (const [name, { value }] of Object.entries(requests ?? {})) {
        expect(`${name}: ${problems(media?.schema ?? {}, value)}`).toBe(`${name}: `);
      }
      expect(media?.examples).toEqual(requests);
    } else {
      expect(requests).toBeUndefined();
    }
    for (const status of Object.keys(responses)) {
      const media = here.responses[status]?.content?.["application/json"] as Media;
      if (status === "101") {
        // A WebSocket has no body.
        expect(media).toBeUndefined();
        continue;
      }
      expect(answers).toHaveProperty(status);
      expect(problems(media.schema, answers[Number(status)])).toBe("");
      expect(media.example).toEqual(answers[Number(status)]);
    }
  });

  it("has parameters whose examples fit", () => {
    for (const { name, schema, example } of operation(operationId).parameters ?? []) {
      if (example !== undefined) {
        expect(`${name}: ${problems(schema, example)}`).toBe(`${name}: `);
      }
    }
  });
});

describe("the examples of creations", () => {
  it.each(Object.entries(examples.createProject?.requests ?? {}))("%s is accepted", (_name, { value }) => {
    const { services } = harness;
    const body = withTemplate(value, services.catalog.current);
    expect(parseCreateProject(body)).toMatchObject({ ok: true });
    expect(() => checkCreation(body, "an-idempotency-key", services)).not.toThrow();
  });
});

describe("the examples of failures", () => {
  // Shows: docs/applications.md#conventions: failure envelope with `message` and a stable `code`
  it("are there for every code, and fit the envelope", () => {
    const all = [...failureExamples().values()].flat();
    expect(all.length).toBeGreaterThan(30);
    for (const { code, body } of all) {
      expect(`${code}: ${problems(document.components.schemas.Failure as object, body)}`).toBe(`${code}: `);
      expect(JSON.stringify(body)).not.toMatch(/undefined|NaN/);
      expect(body).toMatchObject({ status: "failed", code });
    }
  });

  it("are in the document under the status that they are answered with", () => {
    const shown = new Set(
      Object.values(document.components.responses).flatMap(({ content }) =>
        Object.keys(content["application/json"]?.examples ?? {}),
      ),
    );
    const { code } = failures.projectNotFound();
    expect(shown).toContain(code);
    // Only what no operation of its own answers is missing: unknown paths and methods, bytes that are no request, bugs.
    const missing = [...failureExamples().values()]
      .flat()
      .map((one) => one.code)
      .filter((one) => !shown.has(one));
    expect(missing.sort()).toEqual(["INTERNAL_ERROR", "METHOD_NOT_ALLOWED", "REQUEST_TIMEOUT"]);
  });
});

describe("what the routes answer", () => {
  // Shows: docs/applications.md#conventions: success envelope; every answer is what the OpenAPI document
  // Shows: docs/applications.md#fields-of-answers: list item | `id`, `name`, `type_project`, `plan`
  it("is what the document says", async () => {
    await harness.project("openapi", "pdoc", { description: "Documented" });
    await harness.project("openapi", "pdatabase", databaseSpec("postgresql"));
    await harness.kube.create<Backup>(backupResource, {
      apiVersion: "slipway.dev/v1alpha1",
      kind: "Backup",
      metadata: {
        name: "pdatabase-b1",
        namespace: organizationNamespace("openapi"),
        labels: { [labels.project]: "pdatabase" },
      },
      spec: { projectRef: { name: "pdatabase" }, trigger: "manual", requestedAt: "2026-01-31T12:00:00Z" },
    });
    await putGroup(harness.kube, { namespace: organizationNamespace("openapi"), name: "vdoc" }, { A: "1" });
    await harness.kube.create(logDrainResource, {
      metadata: { namespace: organizationNamespace("openapi"), name: "ldoc" },
      spec: { displayName: "Archive", syslog: { host: "logs.example.com", port: 6514 } },
    } as never);
    await putConnection(harness.kube, "openapi", "gdoc");
    const repositoryId = sealRepositoryId("gdoc", "17");
    await harness.project("openapi", "psource", {
      image: undefined,
      source: { connectionId: "gdoc", repositoryId, branch: "main", autoDeploy: false },
      build: {},
    });
    const headers = await harness.owner("openapi");
    for (const { operationId, method, path } of documented) {
      // The ledger and the analytics store are away here, and the fake cluster has no pods' logs.
      const isAway =
        ["listProjectDeployments", "execInstance"].includes(operationId) ||
        /\/(job-runs|runs|builds|network|logs\/search|webhooks|email-recipients|alerts|usage|cost|invoices|budget)/.test(
          path,
        );
      if (method !== "GET" || isAway) {
        continue;
      }
      const isOfDatabase = /\/(database\/connection|metrics|backups.*)$/.test(path);
      const url = path
        .replace(":id", isOfDatabase ? "pdatabase" : path.includes("/source") ? "psource" : "pdoc")
        .replace(":backupId", "pdatabase-b1")
        .replace(":connectionId", "gdoc")
        .replace(":groupId", "vdoc")
        .replace(":drainId", "ldoc")
        .replace(":repositoryId", repositoryIds.seal("gdoc", "17"));
      const answer = await harness.app.inject({ url, headers });
      const media = operation(operationId).responses[answer.statusCode]?.content?.["application/json"];
      expect(`${operationId}: ${answer.statusCode}`).toBe(`${operationId}: 200`);
      expect(`${operationId}: ${problems(media?.schema as object, answer.json())}`).toBe(`${operationId}: `);
    }
  });
});
