import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { type Deployment, organizationNamespace, type Project } from "@slipway/crds";
import {
  type Ledger,
  listQuotaReservations,
  recordDeployment,
  setOrganizationBlocked,
  setPlanCapacity,
} from "@slipway/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exampleBody } from "../../../test/kit/api-server/harness.ts";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import { projectResource } from "../resources.ts";

/** The settings of an application over a real apiserver and a real PostgreSQL; tests play the operator. */

let harness: RealHarness;
let admin: KubeClient;
let ledger: Ledger;

beforeAll(async () => {
  harness = await startRealHarness();
  ({ admin, ledger } = harness);
});
afterAll(() => harness?.close());

type Secret = KubernetesObject & { immutable?: boolean; type?: string; data: Record<string, string> };

type Answer = Promise<{
  statusCode: number;
  headers: Record<string, unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the application answers; the tests say what
  json: () => any;
}>;

interface Application {
  id: string;
  organizationId: string;
  ref: { namespace: string; name: string };
  send: (method: "GET" | "POST" | "PATCH", operation: string, payload?: object | string) => Answer;
  live: () => Promise<Project>;
  secrets: () => Promise<Secret[]>;
}

/** An application of an organization of its own. */
async function application(
  body: Record<string, unknown> = { plan: "premium" },
  config: Record<string, unknown> = {},
): Promise<Application> {
  const { id: organizationId, headers } = await harness.organization();
  return another({ organizationId, headers }, body, config);
}

async function another(
  { organizationId, headers }: { organizationId: string; headers: Record<string, string> },
  body: Record<string, unknown>,
  config: Record<string, unknown> = {},
): Promise<Application> {
  const json = { ...headers, "content-type": "application/json" };
  const created = await harness.app.inject({
    method: "POST",
    url: "/v1/project",
    headers: json,
    payload: exampleBody(body, config),
  });
  expect(created.json()).toMatchObject({ status: "success" });
  const id: string = created.json().data.project_id;
  const ref = { namespace: organizationNamespace(organizationId), name: id };
  return {
    id,
    organizationId,
    ref,
    send: (method, operation, payload) =>
      harness.app.inject({
        method,
        url: `/v1/project/${id}/${operation}`,
        headers: payload === undefined ? headers : json,
        ...(payload === undefined ? {} : { payload }),
      }),
    live: () => admin.get<Project>(projectResource, ref),
    secrets: () => admin.listAll<Secret>(resources.secrets, { namespace: ref.namespace }),
  };
}

const refused = async (answer: Answer, status: number, code: string, extra: object = {}) => {
  const response = await answer;
  expect(response.json()).toMatchObject({ status: "failed", code, ...extra });
  expect(response.statusCode).toBe(status);
};
const succeeded = async (answer: Answer) => {
  const response = await answer;
  expect(response.json()).toMatchObject({ status: "success" });
  expect(response.statusCode).toBe(200);
  return response.json();
};
const reservationOf = async ({ id }: Application) =>
  (await listQuotaReservations(ledger)).find((row) => row.project_id === id);

describe("autoscaling", () => {
  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/autoscaling` | `message`; no deployment
  // Shows: docs/applications.md#project-settings: autoscaling: the whole autoscaling, the number of instances
  it("is set, changed and removed, and nothing else of the project is", async () => {
    const app = await application({ plan: "premium" });
    const { autoscaling: _, instances: __, updatedAt: ___, ...others } = (await app.live()).spec;
    const steps: [object, object | undefined, number][] = [
      [
        { instances: 2, autoscaling: { enabled: true, max_instances: 4, requests_per_second_target: 50 } },
        { enabled: true, maxInstances: 4, requestsPerSecondTarget: 50 },
        2,
      ],
      [
        { autoscaling: { enabled: true, max_instances: 3, cpu_target_percentage: 70 } },
        { enabled: true, maxInstances: 3, cpuTargetPercentage: 70 },
        2,
      ],
      [{ autoscaling: null }, undefined, 2],
      [{ instances: 1 }, undefined, 1],
    ];
    for (const [body, autoscaling, instances] of steps) {
      const message = "autoscaling updated";
      expect(await succeeded(app.send("PATCH", "autoscaling", body))).toEqual({ status: "success", message });
      const { updatedAt: _at, ...spec } = (await app.live()).spec;
      expect(spec).toEqual({ ...others, ...(autoscaling && { autoscaling }), instances });
    }
  });

  // Shows: docs/applications.md#project-settings: autoscaling: the quota of more instances is reserved first
  // Shows: docs/applications.md#errors-other-operations: PATCH autoscaling | 402 `ORGANIZATION_BLOCKED`, `BUDGET_EXHAUSTED`: for
  it("has the quota of more instances, and a blocked organization gets fewer alone", async () => {
    const app = await application({ plan: "free" });
    expect(await reservationOf(app)).toMatchObject({ slots: 1 });
    await succeeded(app.send("PATCH", "autoscaling", { instances: 2 }));
    expect(await reservationOf(app)).toMatchObject({ slots: 2 });
    await refused(
      app.send("PATCH", "autoscaling", { instances: 3 }),
      409,
      "FREE_PLAN_INSTANCE_LIMIT_EXCEEDED",
      {
        limit: 2,
      },
    );
    expect(await reservationOf(app)).toMatchObject({ slots: 2 });
    expect((await app.live()).spec.instances).toBe(2);
    await setOrganizationBlocked(ledger, app.organizationId, true);
    await succeeded(app.send("PATCH", "autoscaling", { instances: 1 }));
    expect(await reservationOf(app)).toMatchObject({ slots: 1 });
    await refused(app.send("PATCH", "autoscaling", { instances: 2 }), 402, "ORGANIZATION_BLOCKED");
    expect(await reservationOf(app)).toMatchObject({ slots: 1 });
  });
});

describe("envs", () => {
  const envs = [
    { name: "ZULU", value: '$(HOME) %d "ü" \u{1f600}\n' },
    { name: "ALPHA", value: "1" },
  ];

  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id/envs` | the variables in clear text, as
  it("are read back as they were sent, at creation and after a change, in their order", async () => {
    const app = await application({ plan: "premium" }, { envs });
    expect(await succeeded(app.send("GET", "envs"))).toEqual({ status: "success", data: envs });
    const next = [{ name: "B", value: "2" }, ...envs.slice(0, 1), { name: "A", value: "3" }];
    expect(await succeeded(app.send("PATCH", "envs", { envs: next }))).toEqual({
      status: "success",
      message: expect.any(String),
    });
    const response = await app.send("GET", "envs");
    expect(response.json().data).toEqual(next);
    expect(response.headers["cache-control"]).toBe("no-store");
  });

  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/envs` | `message`; the whole list is
  it("replaces Secrets that are immutable and are deleted with the project; the spec has no value", async () => {
    const app = await application({ plan: "premium" }, { envs });
    const before = (await app.live()).spec.envsFrom;
    await succeeded(app.send("PATCH", "envs", { envs: [{ name: "TOKEN", value: "c4n4ry" }] }));
    const project = await app.live();
    expect(project.spec.envsFrom).toHaveLength(1);
    expect(project.spec.envsFrom).not.toEqual(before);
    expect(JSON.stringify(project)).not.toContain("c4n4ry");
    expect(harness.logged()).not.toContain("c4n4ry");
    const createdSecret = (await app.secrets()).find(
      ({ metadata }) => metadata?.name === project.spec.envsFrom?.[0]?.name,
    );
    expect(createdSecret).toMatchObject({
      immutable: true,
      metadata: {
        labels: { "slipway.dev/project": app.id },
        ownerReferences: [{ kind: "Project", uid: project.metadata.uid }],
      },
    });
    // The superseded one is the operator's to remove.
    expect((await app.secrets()).map(({ metadata }) => metadata?.name)).toContain(before?.[0]?.name);
  });

  // Shows: docs/applications.md#project-settings: envs: limits and malformed lists
  // Shows: docs/applications.md#limits: body | 12 MiB where it has variables, else 1 MiB
  it("take the largest legal set, also written as escapes", async () => {
    const app = await application();
    const largest = Array.from({ length: 50 }, (_, index) => ({
      name: `N${49 - index}_${"X".repeat(120)}`.slice(0, 120),
      value: String(index % 10).repeat(32_760),
    }));
    const body = JSON.stringify({ envs: largest }).replace(/([0-9])\1{999,}/g, (digits, digit: string) =>
      `\\u003${digit}`.repeat(digits.length),
    );
    expect(body.length).toBeGreaterThan(9_800_000);
    await succeeded(app.send("PATCH", "envs", body));
    expect((await app.live()).spec.envsFrom).toHaveLength(2);
    expect((await app.send("GET", "envs")).json().data).toEqual(largest);
    expect((await app.send("PATCH", "envs", `${body}${" ".repeat(12 * 1024 * 1024)}`)).statusCode).toBe(413);
  });

  it("change nothing when they are the same, but apply their order and create a deleted Secret again", async () => {
    const app = await application({ plan: "premium" }, { envs });
    const { generation } = (await app.live()).metadata;
    const turned = [...envs].reverse();
    await succeeded(app.send("PATCH", "envs", { envs: turned }));
    expect((await app.send("GET", "envs")).json().data).toEqual(turned);
    for (const { metadata } of await app.secrets()) {
      expect(metadata?.annotations?.["slipway.dev/reused-at"]).toBeDefined();
      await admin.delete(resources.secrets, { ...app.ref, name: metadata?.name ?? "" });
    }
    // Less than the whole would be taken for the whole.
    const incomplete = await app.send("GET", "envs");
    expect(incomplete.json()).toMatchObject({ code: "ENVIRONMENT_INCOMPLETE" });
    expect(incomplete.statusCode).toBe(409);
    await succeeded(app.send("PATCH", "envs", { envs }));
    expect((await app.send("GET", "envs")).json().data).toEqual(envs);
    expect((await app.live()).metadata.generation).toBe(generation);
  });

  it("can be none", async () => {
    const app = await application({ plan: "premium" }, { envs });
    await succeeded(app.send("PATCH", "envs", { envs: [] }));
    expect((await app.live()).spec).not.toHaveProperty("envsFrom");
    expect((await app.send("GET", "envs")).json()).toEqual({ status: "success", data: [] });
  });

  // Shows: docs/applications.md#project-settings: envs: Secrets that `kubectl` set are read and
  it("are read from Secrets that kubectl gave, which a change replaces", async () => {
    const app = await application({ plan: "premium" }, { envs: [{ name: "A", value: "1" }] });
    const own = {
      metadata: { name: "mine", namespace: app.ref.namespace },
      stringData: { B: "2", A: "own" },
    };
    await admin.create(resources.secrets, own);
    const [first] = (await app.live()).spec.envsFrom ?? [];
    await admin.patch(projectResource, app.ref, { spec: { envsFrom: [first, { name: "mine" }] } });
    expect((await app.send("GET", "envs")).json().data).toEqual([
      { name: "A", value: "own", source: { type: "secret", name: "mine" } },
      { name: "B", value: "2", source: { type: "secret", name: "mine" } },
    ]);
    await succeeded(app.send("PATCH", "envs", { envs: [{ name: "C", value: "3" }] }));
    expect((await app.send("GET", "envs")).json().data).toEqual([{ name: "C", value: "3" }]);
    expect((await app.secrets()).map(({ metadata }) => metadata?.name)).toContain("mine");
  });

  // Shows: docs/applications.md#errors-other-operations: GET envs | 409 `ENVIRONMENT_TOO_LARGE`
  it("of more than one answer may have are refused with 409", async () => {
    const app = await application();
    const names = Array.from({ length: 5 }, (_, index) => `big-${index}`);
    for (const name of names) {
      const data = { A: "x".repeat(1_000_000) };
      await admin.create(resources.secrets, {
        metadata: { name, namespace: app.ref.namespace },
        stringData: data,
      } as KubernetesObject);
    }
    await admin.patch(projectResource, app.ref, { spec: { envsFrom: names.map((name) => ({ name })) } });
    await refused(app.send("GET", "envs"), 409, "ENVIRONMENT_TOO_LARGE");
  });

  // Shows: docs/applications.md#project-settings: envs: all change in one deployment, never a mixture
  it("end as one of the sets under concurrent changes, never as a mixture", async () => {
    const app = await application();
    const set = (index: number) =>
      Array.from({ length: 3 }, (_, at) => ({ name: `N${at}`, value: `set ${index}` }));
    await Promise.all(
      Array.from({ length: 10 }, (_, index) => succeeded(app.send("PATCH", "envs", { envs: set(index) }))),
    );
    const { data } = (await app.send("GET", "envs")).json();
    expect(new Set(data.map(({ value }: { value: string }) => value)).size).toBe(1);
    expect(data).toHaveLength(3);
  });
});

describe("image", () => {
  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/image` | `message`; a new deployment
  // Shows: docs/applications.md#project-settings: image: the same one is deployed again; a private one
  it("changes, drops a pinned manifest, and is deployed again when it is the same", async () => {
    const app = await application();
    await admin.patch(projectResource, app.ref, { spec: { image: { digest: `sha256:${"a".repeat(64)}` } } });
    expect(await succeeded(app.send("PATCH", "image", { image: "registry.example.com/shop:2" }))).toEqual({
      status: "success",
      message: expect.any(String),
    });
    const changed = await app.live();
    expect(changed.spec.image).toEqual({ url: "registry.example.com/shop:2", isPublic: true });
    expect(changed.spec.restartedAt).toBeUndefined();
    await succeeded(app.send("PATCH", "image", { image: "registry.example.com/shop:2" }));
    const again = await app.live();
    expect(again.spec.restartedAt).toMatch(/Z$/);
    expect(again.metadata.generation).toBe((changed.metadata.generation ?? 0) + 1);
  });

  // Shows: docs/applications.md#project-settings: image: the same one is deployed again; a private one
  it("keeps a private image's credentials, and its registry", async () => {
    const authentication = { auth_type: "username_password", username: "robot", token: "p4ss" };
    const app = await application(
      { plan: "premium" },
      { image: { url: "registry.example.com/shop:1", is_public: false, authentication } },
    );
    await succeeded(app.send("PATCH", "image", { image: "registry.example.com/other/shop:2" }));
    expect((await app.live()).spec.image?.pullSecretRef?.name).toMatch(/-pull-/);
    await refused(
      app.send("PATCH", "image", { image: "other.example.com/shop:2" }),
      400,
      "VALIDATION_FAILED",
      {
        errors: [{ field: "image", message: expect.stringContaining("credentials") }],
      },
    );
  });

  // Shows: docs/applications.md#create: `auth_type` `aws`: a token is obtained and renewed before it
  it("of AWS is created with credentials that are in a Secret alone", async () => {
    const aws = {
      access_key_id: "AKIAIOSFODNN7EXAMPLE",
      secret_access_key: "c4n4ry-of-aws",
      region: "eu-west-1",
      account_id: "123456789012",
    };
    const url = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/shop:1";
    const image = { url, is_public: false, authentication: { auth_type: "aws", aws } };
    const app = await application({ plan: "premium" }, { image });
    const { spec } = await app.live();
    const [secret] = await app.secrets();
    expect(spec.image).toEqual({ url, isPublic: false, awsCredentialsRef: { name: secret?.metadata?.name } });
    expect(secret).toMatchObject({ type: "slipway.dev/aws-registry", immutable: true });
    expect(Buffer.from(secret?.data.secretAccessKey ?? "", "base64").toString()).toBe("c4n4ry-of-aws");
    expect(harness.logged()).not.toContain("c4n4ry-of-aws");
    await refused(
      app.send("PATCH", "image", { image: "registry.example.com/shop:2" }),
      400,
      "VALIDATION_FAILED",
    );
    await succeeded(app.send("PATCH", "image", { image: url.replace(":1", ":2") }));
  });
});

describe("plan", () => {
  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/plan` | `data`: `plan`, `payment_mode`
  it("changes, and the reserved quota with it", async () => {
    const app = await application({ plan: "free" });
    expect(await reservationOf(app)).toMatchObject({ plan: "free", scope: "free-instances", slots: 1 });
    expect(
      await succeeded(app.send("PATCH", "plan", { plan: "basic", payment_mode: "yearly" })),
    ).toMatchObject({
      message: expect.any(String),
      data: { plan: "basic", payment_mode: "yearly" },
    });
    expect((await app.live()).spec).toMatchObject({ plan: "basic", paymentMode: "yearly" });
    expect(await reservationOf(app)).toMatchObject({ plan: "basic", scope: null });
    const { data } = await succeeded(app.send("PATCH", "plan", { plan: "premium" }));
    expect(data).toEqual({ plan: "premium", payment_mode: "yearly" });
  });

  // Shows: docs/applications.md#errors-other-operations: PATCH plan | 402, 409
  it("of a blocked organization stays: 402", async () => {
    const app = await application({ plan: "basic" });
    await setOrganizationBlocked(ledger, app.organizationId, true);
    await refused(app.send("PATCH", "plan", { plan: "premium" }), 402, "ORGANIZATION_BLOCKED");
    expect((await app.live()).spec.plan).toBe("basic");
  });

  // Shows: docs/applications.md#errors-other-operations: PATCH plan | 402, 409
  it("answers 409 over a limit or a capacity, and keeps its old reservation then", async () => {
    const { id: organizationId, headers } = await harness.organization();
    await another({ organizationId, headers }, { plan: "free" }, { instances: 1 });
    const app = await another({ organizationId, headers }, { plan: "basic" }, { instances: 2 });
    await refused(app.send("PATCH", "plan", { plan: "free" }), 409, "FREE_PLAN_INSTANCE_LIMIT_EXCEEDED", {
      limit: 2,
      remaining: 1,
    });
    await setPlanCapacity(ledger, "business", 0);
    await refused(app.send("PATCH", "plan", { plan: "business" }), 409, "INSUFFICIENT_PLAN_CAPACITY");
    await setPlanCapacity(ledger, "business", null);
    expect((await app.live()).spec.plan).toBe("basic");
    expect(await reservationOf(app)).toMatchObject({ plan: "basic" });
  });

  it("releases the new reservation when the cluster rejects the change", async () => {
    const app = await application({ plan: "basic" });
    await admin.patch(projectResource, app.ref, { metadata: { finalizers: ["slipway.dev/test"] } });
    await admin.delete(projectResource, app.ref);
    await refused(app.send("PATCH", "plan", { plan: "premium" }), 409, "PROJECT_ALREADY_DELETED");
    expect(await reservationOf(app)).toMatchObject({ plan: "basic" });
    await admin.patch(projectResource, app.ref, { metadata: { finalizers: [] } });
  });

  it("admits one of many concurrent requests for the rest of a limit", async () => {
    const { id: organizationId, headers } = await harness.organization();
    const apps = await Promise.all(
      Array.from({ length: 6 }, () => another({ organizationId, headers }, { plan: "basic" })),
    );
    const answers = await Promise.all(apps.map((app) => app.send("PATCH", "plan", { plan: "free" })));
    expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(2);
    for (const answer of answers.filter(({ statusCode }) => statusCode !== 200)) {
      expect(answer.json()).toMatchObject({ code: "FREE_PLAN_INSTANCE_LIMIT_REACHED", limit: 2 });
    }
    const plans = await Promise.all(apps.map(async (app) => (await app.live()).spec.plan));
    expect(plans.filter((plan) => plan === "free")).toHaveLength(2);
  });
});

describe("pause and resume", () => {
  // Shows: docs/applications.md#endpoints: `POST /v1/project/:id/pause` | `data`: `project_id`
  // Shows: docs/applications.md#endpoints: `POST /v1/project/:id/resume` | `data`: `project_id`
  it("stop and start, release and reserve the quota, and may be repeated", async () => {
    const app = await application({ plan: "free" });
    for (let times = 0; times < 2; times += 1) {
      const { data, message } = await succeeded(app.send("POST", "pause"));
      expect([data, typeof message]).toEqual([{ project_id: app.id, status: "creating" }, "string"]);
    }
    expect((await app.live()).spec.paused).toBe(true);
    expect(await reservationOf(app)).toBeUndefined();
    for (let times = 0; times < 2; times += 1) {
      const { data } = await succeeded(app.send("POST", "resume"));
      expect(data.project_id).toBe(app.id);
    }
    expect((await app.live()).spec).not.toHaveProperty("paused");
    expect(await reservationOf(app)).toMatchObject({ plan: "free", slots: 1 });
    expect(harness.audited.map(({ operation, projectId }) => `${operation} ${projectId}`)).toContain(
      `resumeProject ${app.id}`,
    );
  });

  it("shows the status that the operator sets", async () => {
    const app = await application();
    const answer = app.send("POST", "pause");
    const status = { phase: "stopped", observedGeneration: 2 };
    await expect.poll(async () => (await app.live()).spec.paused).toBe(true);
    await admin.patch(projectResource, app.ref, { status }, { subresource: "status" });
    expect((await answer).json().data).toEqual({ project_id: app.id, status: "stopped" });
  });

  // Shows: docs/applications.md#project-settings: pause and resume: the quota is released and reserved
  // Shows: docs/applications.md#errors-other-operations: resume | 402, 409
  it("answers 402 and 409 to what may not start again", async () => {
    const { id: organizationId, headers } = await harness.organization();
    const app = await another({ organizationId, headers }, { plan: "free" });
    await succeeded(app.send("POST", "pause"));
    await another({ organizationId, headers }, { plan: "free" }, { instances: 2 });
    await refused(app.send("POST", "resume"), 409, "FREE_PLAN_INSTANCE_LIMIT_REACHED", { limit: 2 });
    await setOrganizationBlocked(ledger, organizationId, true);
    await refused(app.send("POST", "resume"), 402, "ORGANIZATION_BLOCKED");
    expect((await app.live()).spec.paused).toBe(true);
    await succeeded(app.send("POST", "pause"));
  });

  it("needs no quota for what is changed while it is paused", async () => {
    const app = await application({ plan: "free" });
    await succeeded(app.send("POST", "pause"));
    await succeeded(app.send("PATCH", "plan", { plan: "basic" }));
    expect(await reservationOf(app)).toBeUndefined();
    expect((await app.live()).spec.paused).toBe(true);
  });
});

describe("rollback", () => {
  const digest = `sha256:${"d".repeat(64)}`;

  /** Lets the operator have deployed what the spec now says. */
  async function deployed(app: Application, id: string): Promise<Deployment> {
    const { spec, status } = await app.live();
    const { image, command, port, plan, paymentMode, envsFrom, healthcheck } = spec;
    const deployment: Deployment = {
      id,
      status: "succeeded",
      startedAt: "2026-01-31T12:00:00Z",
      settingsHash: id,
      updatedImage: true,
      image: { reference: image?.url ?? "", digest },
      settings: { image, command, port, plan, paymentMode, envsFrom, healthcheck },
    };
    const deployments = [deployment, ...(status?.deployments ?? [])];
    const patch = { status: { observedGeneration: 1, deployments } };
    await admin.patch(projectResource, app.ref, patch, { subresource: "status" });
    return deployment;
  }

  // Shows: docs/applications.md#endpoints: `POST /v1/project/:id/rollback` | `data`: `project_id`
  it("restores image, environment, plan and health check", async () => {
    const app = await application(
      { plan: "basic", payment_mode: "monthly" },
      { envs: [{ name: "A", value: "old" }], healthcheck: { enabled: true, path: "/old" } },
    );
    await deployed(app, "d1");
    await succeeded(app.send("PATCH", "image", { image: "registry.example.com/shop:2" }));
    await succeeded(app.send("PATCH", "envs", { envs: [{ name: "B", value: "new" }] }));
    await succeeded(app.send("PATCH", "plan", { plan: "premium", payment_mode: "hourly" }));
    const triggering = harness.app.inject({
      method: "POST",
      url: `/v1/project/${app.id}/rollback`,
      headers: harness.key(app.organizationId, "project.deploy.trigger on project:*"),
      payload: { deployment_id: "d1" },
    });
    await refused(triggering, 403, "PERMISSION_DENIED", {
      required: ["image", "envs", "plan"].map((what) => `project.${what}.update on project:${app.id}`),
    });
    expect((await app.live()).spec.plan).toBe("premium");
    expect(await succeeded(app.send("POST", "rollback", { deployment_id: "d1" }))).toEqual({
      status: "success",
      message: expect.any(String),
      data: { project_id: app.id, deployment_id: "d1" },
    });
    const { spec } = await app.live();
    expect(spec).toMatchObject({
      image: { url: "registry.example.com/shop:1", isPublic: true, digest },
      plan: "basic",
      paymentMode: "monthly",
      healthcheck: { enabled: true, path: "/old" },
      restartedAt: expect.stringMatching(/Z$/),
    });
    expect((await app.send("GET", "envs")).json().data).toEqual([{ name: "A", value: "old" }]);
    expect(await reservationOf(app)).toMatchObject({ plan: "basic" });
    // An image by its tag is no longer that manifest.
    await succeeded(app.send("PATCH", "image", { image: "registry.example.com/shop:1" }));
    expect((await app.live()).spec.image).not.toHaveProperty("digest");
  });

  // Shows: docs/applications.md#command: another command is a deployment, and a rollback restores it
  it("restores the command, or that the image's own ran", async () => {
    const app = await application({ plan: "basic" });
    await deployed(app, "d1");
    await succeeded(app.send("PATCH", "command", { command: ["node", "a.js"] }));
    await deployed(app, "d2");
    await succeeded(app.send("PATCH", "command", { command: ["node", "b.js"] }));
    await succeeded(app.send("POST", "rollback", { deployment_id: "d2" }));
    expect((await app.live()).spec.command).toEqual(["node", "a.js"]);
    await succeeded(app.send("POST", "rollback", { deployment_id: "d1" }));
    expect((await app.live()).spec).not.toHaveProperty("command");
  });

  // Shows: docs/applications.md#pre-deploy-command: a rollback does not run it, unless its body has
  it("does not run the pre-deploy command unless it is asked to, and keeps it", async () => {
    const migrate = { pre_deploy_command: ["migrate"], pre_deploy_timeout_seconds: 60 };
    const app = await application({ plan: "basic" }, migrate);
    const preDeploy = { preDeployCommand: ["migrate"], preDeployTimeoutSeconds: 60 };
    await deployed(app, "d1");
    await succeeded(app.send("PATCH", "image", { image: "registry.example.com/shop:2" }));
    await succeeded(app.send("POST", "rollback", { deployment_id: "d1" }));
    const { spec } = await app.live();
    const preDeploySkip = { deployment: "d1", restartedAt: spec.restartedAt };
    expect(spec).toMatchObject({ ...preDeploy, preDeploySkip });
    await succeeded(app.send("POST", "rollback", { deployment_id: "d1", run_pre_deploy_command: true }));
    const asked = (await app.live()).spec;
    expect(asked).toMatchObject(preDeploy);
    expect(asked).not.toHaveProperty("preDeploySkip");
    const without = await application({ plan: "basic" });
    await deployed(without, "d1");
    await succeeded(without.send("PATCH", "image", { image: "registry.example.com/shop:2" }));
    await succeeded(without.send("POST", "rollback", { deployment_id: "d1" }));
    expect((await without.live()).spec).not.toHaveProperty("preDeploySkip");
  });

  // Shows: docs/applications.md#project-settings: rollback of a project that is built from Git: a
  it("of what is built from Git names the build's digest, and no image", async () => {
    const app = await application({ plan: "basic" });
    const url = `builds.example/${app.organizationId}/${app.id}`;
    const image = { url, digest, isPublic: false, pullSecretRef: { name: "slipway-builds-registry" } };
    await deployed(app, "d1");
    // Attached by `kubectl`, built and deployed by the operator.
    const source = { connectionId: "g1", repositoryId: "r1", branch: "main", autoDeploy: true };
    await admin.patch(projectResource, app.ref, { spec: { image: null, source, build: {} } });
    const { status } = await app.live();
    const [first] = status?.deployments ?? [];
    const deployments = [
      { ...first, image: { reference: url, digest }, settings: { ...first?.settings, image } },
    ];
    const build = {
      imageBuild: "b2",
      imageBuildAt: new Date().toISOString(),
      image: { reference: url, digest: `sha256:${"e".repeat(64)}` },
    };
    await admin.patch(
      projectResource,
      app.ref,
      { status: { deployments, build } },
      { subresource: "status" },
    );
    await succeeded(app.send("POST", "rollback", { deployment_id: "d1" }));
    const { spec } = await app.live();
    expect(spec).not.toHaveProperty("image");
    expect(spec).toMatchObject({ source, rollback: { digest } });
    expect(Date.parse(spec.rollback?.at ?? "")).toBeGreaterThanOrEqual(Date.parse(build.imageBuildAt));
  });

  // Shows: docs/applications.md#errors-other-operations: rollback | 404 `DEPLOYMENT_NOT_FOUND`, 409
  it("answers 404 to a deployment that does not exist, and 409 to one whose settings are not kept", async () => {
    const app = await application();
    await deployed(app, "d1");
    await refused(app.send("POST", "rollback", { deployment_id: "d0" }), 404, "DEPLOYMENT_NOT_FOUND");
    await recordDeployment(ledger, row(app, "d0", new Date("2025-01-01T00:00:00Z")));
    await refused(app.send("POST", "rollback", { deployment_id: "d0" }), 409, "DEPLOYMENT_NOT_AVAILABLE");
    const foreign = await application();
    await refused(foreign.send("POST", "rollback", { deployment_id: "d1" }), 404, "DEPLOYMENT_NOT_FOUND");
  });

  // Shows: docs/applications.md#errors-other-operations: rollback | 404 `DEPLOYMENT_NOT_FOUND`, 409
  it("answers 409 when the deployment's Secrets are deleted", async () => {
    const app = await application({ plan: "basic" }, { envs: [{ name: "A", value: "old" }] });
    const { settings } = await deployed(app, "d1");
    await succeeded(app.send("PATCH", "envs", { envs: [] }));
    await admin.delete(resources.secrets, { ...app.ref, name: settings.envsFrom?.[0]?.name ?? "" });
    await refused(app.send("POST", "rollback", { deployment_id: "d1" }), 409, "DEPLOYMENT_NOT_AVAILABLE");
    expect((await app.live()).spec).not.toHaveProperty("envsFrom");
  });

  // Shows: docs/applications.md#errors-other-operations: rollback | 404 `DEPLOYMENT_NOT_FOUND`, 409
  it("to another plan needs quota there, and an organization that is not blocked", async () => {
    const app = await application({ plan: "basic" });
    await deployed(app, "d1");
    await succeeded(app.send("PATCH", "plan", { plan: "premium" }));
    await setPlanCapacity(ledger, "basic", 0);
    await refused(app.send("POST", "rollback", { deployment_id: "d1" }), 409, "INSUFFICIENT_PLAN_CAPACITY");
    await setPlanCapacity(ledger, "basic", null);
    expect(await reservationOf(app)).toMatchObject({ plan: "premium" });
    await setOrganizationBlocked(ledger, app.organizationId, true);
    await refused(app.send("POST", "rollback", { deployment_id: "d1" }), 402, "ORGANIZATION_BLOCKED");
    expect((await app.live()).spec.plan).toBe("premium");
  });
});

const row = (app: Application, id: string, createdAt: Date) => ({
  id,
  organization_id: app.organizationId,
  project_id: app.id,
  project_uid: null,
  created_at: createdAt,
  finished_at: null,
  status: "in_progress" as const,
  updated_image: true,
  image: "registry.example.com/shop:1",
  digest: null,
  settings_hash: id,
  message: null,
});

describe("GET historic/deployments", () => {
  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id/historic/deployments` | the deployments
  // Shows: docs/applications.md#conventions: timestamps are ISO 8601 in UTC
  // Shows: docs/applications.md#fields-of-answers: deployment record | `id`, `project_id`
  // Shows: docs/applications.md#project-settings: historic deployments: of this month by the server's
  it("lists those of this month, newest first, of this project alone", async () => {
    const app = await application();
    const now = new Date();
    const first = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth()));
    const before = new Date(first.getTime() - 1);
    const ended = { finished_at: now, status: "failed" as const, message: "no such image" };
    await recordDeployment(ledger, row(app, "last-month", before));
    await recordDeployment(ledger, row(app, "first", first));
    await recordDeployment(ledger, { ...row(app, "second", now), ...ended, updated_image: false });
    const foreign = await application();
    await recordDeployment(ledger, row(foreign, "foreign", now));
    const image = "registry.example.com/shop:1";
    expect((await succeeded(app.send("GET", "historic/deployments"))).data).toEqual([
      {
        id: "second",
        project_id: app.id,
        updated_image: false,
        created_at: now.toISOString(),
        status: "failed",
        image,
        finished_at: now.toISOString(),
        message: "no such image",
      },
      {
        id: "first",
        project_id: app.id,
        updated_image: true,
        created_at: first.toISOString(),
        status: "in_progress",
        image,
      },
    ]);
  });

  it("of more than 1,000 says how many there are, and gives the rest on the next page", async () => {
    const app = await application();
    const now = new Date();
    const rows = Array.from({ length: 1_003 }, (_, index) =>
      row(app, `d${String(index).padStart(4, "0")}`, now),
    );
    await ledger.insertInto("deployments").values(rows).execute();
    const list = async (query = "") => succeeded(app.send("GET", `historic/deployments${query}`));
    const { data, pagination } = await list();
    expect([data.length, data[0].id]).toEqual([1_000, "d1002"]);
    expect(pagination).toEqual({ page: 1, limit: 1_000, total: 1_003, pages: 2 });
    const rest = await list("?page=2");
    expect(rest.data.map(({ id }: { id: string }) => id)).toEqual(["d0002", "d0001", "d0000"]);
    await refused(app.send("GET", "historic/deployments?limit=1001"), 400, "VALIDATION_FAILED");
  });
});

describe("GET logs", () => {
  it("may list pods and read their logs, and skips those without a node", async () => {
    const app = await application();
    const pod = {
      metadata: {
        name: "waiting",
        namespace: app.ref.namespace,
        labels: { "slipway.dev/project": app.id },
      },
      spec: { containers: [{ name: "app", image: "registry.example.com/shop:1" }] },
    };
    await admin.create(resources.pods, pod as KubernetesObject);
    expect(await succeeded(app.send("GET", "logs"))).toEqual({
      status: "success",
      data: [],
      instances: ["waiting"],
    });
    // A container that runs, by its status, on a node that is not there.
    const status = {
      containerStatuses: [
        { name: "app", ready: true, restartCount: 0, image: "", imageID: "", state: { running: {} } },
      ],
    };
    await admin.patch(resources.pods, { ...app.ref, name: "waiting" }, { status }, { subresource: "status" });
    expect((await succeeded(app.send("GET", "logs"))).data).toEqual([]);
  });
});
