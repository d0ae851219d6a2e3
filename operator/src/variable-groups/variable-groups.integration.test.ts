import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import type { Project, VariableGroup } from "@slipway/crds";
import { systemClock } from "@slipway/process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  envFromOf as envFromIn,
  variablesOf as variablesIn,
} from "../../../test/kit/operator/container-variables.ts";
import {
  conditionsOf,
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  type TestOperator,
  untilUnchanged,
} from "../../../test/kit/operator/harness.ts";
import { deploy } from "../../../test/kit/operator/pods.ts";
import { exampleJob, exampleWorker } from "../../../test/kit/operator/projects.ts";
import { putGroup } from "../../../test/kit/operator/variable-groups.ts";
import { projectResource, variableGroupResource } from "../resources.ts";

/** An operator on a real apiserver without kubelets. */

const namespace = "slipway-org-alpha";
let cluster: TestCluster;
let operator: TestOperator;
/** How far the operator's clock is ahead. */
let aheadMs = 0;

beforeAll(async () => {
  cluster = await startCluster();
  operator = await startOperator(cluster, {
    listOrganizations: async () => ["alpha", "beta"],
    variableRollouts: 2,
    clock: { ...systemClock, now: () => new Date(Date.now() + aheadMs) },
  });
  for (const name of [namespace, "slipway-org-beta"]) {
    await eventually(() => exists(cluster.client, resources.namespaces, { name }));
  }
});
afterAll(async () => {
  await operator?.stop();
  await cluster?.stop();
});

type SecretObject = KubernetesObject & { data?: Record<string, string> };

const ref = (name: string, where = namespace) => ({ namespace: where, name });
const get = (name: string) => cluster.client.get<Project>(projectResource, ref(name));
const condition = (name: string, expected: string) =>
  eventually(async () => (await conditionsOf(cluster.client, ref(name))).includes(expected));
const messageOf = async (name: string) =>
  (await get(name)).status?.conditions?.find(({ type }) => type === "VariablesReady")?.message;
const base64 = (data: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
  );

const createSecret = (name: string, data: Record<string, string>) =>
  cluster.client.create<SecretObject>(resources.secrets, { metadata: ref(name), data: base64(data) });
const createWorker = (name: string, spec: Partial<Project["spec"]>) =>
  cluster.client.create<Project>(projectResource, exampleWorker(ref(name), spec));
const group = (name: string, data: Record<string, string>, where = namespace) =>
  putGroup(cluster.client, ref(name, where), data);

/** Names of the Secrets that a container's variables come from. */
const envFromOf = (name: string, resource = resources.deployments) =>
  envFromIn(cluster.client, ref(name), resource);

/** The variables that a container starts with. */
const variablesOf = (name: string, resource = resources.deployments) =>
  variablesIn(cluster.client, ref(name), resource);

const has = (name: string, variables: Record<string, string>) =>
  eventually(async () => {
    const found = await variablesOf(name).catch(() => ({}) as Record<string, string>);
    return Object.entries(variables).every(([key, value]) => found[key] === value);
  });

/** What the Deployment is to run, runs: its instances take the place of those before. */
async function serve(name: string): Promise<void> {
  await eventually(() => exists(cluster.client, resources.deployments, ref(name)));
  await eventually(async () => {
    await deploy(cluster.client, ref(name), "registry.example/team/worker:1.0.0", `sha256:${"a".repeat(64)}`);
    return (await get(name)).status?.deployments?.[0]?.status === "succeeded";
  });
}

/** How often the Deployment's spec was changed. */
const generationOf = async (name: string) =>
  (await cluster.client.get(resources.deployments, ref(name))).metadata?.generation ?? 0;
const deploymentsOf = async (name: string) => (await get(name)).status?.deployments ?? [];

describe("a worker that attaches two groups", () => {
  // Shows: docs/variable-groups.md#values: a variable of several
  // Shows: docs/variable-groups.md#with-kubectl: True | `VariablesResolved`
  test("has the variables of both: a later group wins over one before it, its own over all", async () => {
    await group("mail", { SMTP: "mail.example", PORT: "25", LEVEL: "mail" });
    await group("logs", { PORT: "26", LEVEL: "logs" });
    await createSecret("web-own", { LEVEL: "own" });
    await createWorker("web", { variableGroups: ["mail", "logs"], envsFrom: [{ name: "web-own" }] });
    await has("web", { SMTP: "mail.example", PORT: "26", LEVEL: "own" });
    expect(await envFromOf("web")).toEqual([
      expect.stringMatching(/^web-refs-[0-9a-f]{12}$/),
      expect.stringMatching(/^web-refs-[0-9a-f]{12}$/),
    ]);
    await condition("web", "VariablesReady=True/VariablesResolved");
    expect(JSON.stringify(await get("web"))).not.toContain("mail.example");
    await serve("web");
  });

  test("is left alone while nothing changes", async () => {
    await untilUnchanged(cluster);
    const before = (await cluster.operatorWrites()).length;
    operator.catalogChanged();
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    const writes = (await cluster.operatorWrites()).slice(before);
    expect(writes.filter((write) => !write.includes("/events"))).toEqual([]);
  });

  // Shows: docs/variable-groups.md#changes: each project that attaches a group is rolled once
  test("is rolled once when one changes, and nothing else is", async () => {
    await createWorker("bystander", {});
    await serve("bystander");
    await untilUnchanged(cluster);
    const [bystander, before, old] = [
      await generationOf("bystander"),
      await generationOf("web"),
      await envFromOf("web"),
    ];
    await group("mail", { SMTP: "mail2.example", PORT: "25" });
    await has("web", { SMTP: "mail2.example", PORT: "26", LEVEL: "own" });
    await serve("web");
    await untilUnchanged(cluster);
    expect(await generationOf("web")).toBe(before + 1);
    expect((await deploymentsOf("web")).map(({ status }) => status)).toEqual(["succeeded", "succeeded"]);
    expect(await generationOf("bystander")).toBe(bystander);
    const now = await envFromOf("web");
    expect(now?.slice(1)).toEqual(old?.slice(1));
    const replaced = ref(old?.[0] ?? "");
    expect(await exists(cluster.client, resources.secrets, replaced)).toBe(true);
    aheadMs += 360_000;
    operator.catalogChanged();
    await eventually(async () => !(await exists(cluster.client, resources.secrets, replaced)));
  });

  // Shows: docs/variable-groups.md#with-kubectl: False | `VariableGroupNotFound`
  test("keeps the last values of one that is deleted with kubectl, and says so", async () => {
    const before = await generationOf("web");
    await cluster.client.delete(variableGroupResource, ref("mail"));
    await condition("web", "VariablesReady=False/VariableGroupNotFound");
    expect(await messageOf("web")).toBe("The variable group mail does not exist. The last values are kept.");
    await untilUnchanged(cluster);
    expect(await generationOf("web")).toBe(before);
    expect(await conditionsOf(cluster.client, ref("web"))).toContain("Ready=True/Ready");
  });

  test("has no copies left once it is detached", async () => {
    await cluster.client.patch(projectResource, ref("web"), { spec: { variableGroups: [], envsFrom: null } });
    await eventually(async () => (await envFromOf("web")) === undefined);
    await serve("web");
    aheadMs += 360_000;
    operator.catalogChanged();
    await eventually(async () => {
      const secrets = await cluster.client.listAll(resources.secrets, { namespace });
      return secrets.every(({ metadata }) => !metadata?.name?.startsWith("web-refs-"));
    });
    expect((await conditionsOf(cluster.client, ref("web"))).join()).not.toContain("VariablesReady");
  });
});

describe("a project does not start", () => {
  test("with a group of another organization, as with one that does not exist", async () => {
    await group("foreign", { KEY: "value" }, "slipway-org-beta");
    await createWorker("thief", { variableGroups: ["foreign"] });
    await condition("thief", "VariablesReady=False/VariableGroupNotFound");
    expect(await messageOf("thief")).toBe("The variable group foreign does not exist");
    expect(await envFromOf("thief")).toBeUndefined();
    await group("foreign", { KEY: "own" });
    await has("thief", { KEY: "own" });
  });

  // Shows: docs/variable-groups.md#with-kubectl: False | `VariablesTooLarge`
  test("with a group whose Secret does not exist, or is too large", async () => {
    const spec = { displayName: "Late", secretRef: { name: "late-values" } };
    await cluster.client.create<VariableGroup>(variableGroupResource, {
      apiVersion: "slipway.dev/v1alpha1",
      kind: "VariableGroup",
      metadata: ref("late"),
      spec,
    });
    await createWorker("early", { variableGroups: ["late"] });
    await condition("early", "VariablesReady=False/SecretNotFound");
    await createSecret("late-values", { A: "x".repeat(40_000), B: "x".repeat(40_000) });
    await condition("early", "VariablesReady=False/VariablesTooLarge");
    expect(await messageOf("early")).toBe("The variable group late is larger than 64 KiB");
    await cluster.client.patch(resources.secrets, ref("late-values"), { data: { B: null } });
    await condition("early", "VariablesReady=True/VariablesResolved");
  });
});

// Shows: docs/variable-groups.md#changes: many projects | five projects of an organization
// Shows: docs/variable-groups.md#with-kubectl: False | `RolloutQueued`
test("no more projects are rolled at a time than the setting says; the others wait, and say so", async () => {
  const names = ["one", "two", "three", "four", "five"];
  await group("shared", { KEY: "1" });
  for (const name of names) {
    await createWorker(name, { variableGroups: ["shared"] });
  }
  await Promise.all(names.map(serve));
  await untilUnchanged(cluster);
  const before = new Map(
    await Promise.all(names.map(async (name) => [name, await generationOf(name)] as const)),
  );
  const rolling = async () => {
    const found = await Promise.all(
      names.map(async (name) => ((await variablesOf(name)).KEY === "2" ? [name] : [])),
    );
    return found.flat();
  };
  const queued = async () => {
    const found = await Promise.all(
      names.map(async (name) =>
        (await conditionsOf(cluster.client, ref(name))).includes("VariablesReady=False/RolloutQueued")
          ? [name]
          : [],
      ),
    );
    return found.flat();
  };
  await group("shared", { KEY: "2" });
  const done = new Set<string>();
  for (const expected of [2, 2, 1]) {
    await eventually(async () => (await rolling()).length === done.size + expected);
    await eventually(async () => (await queued()).length === names.length - done.size - expected);
    await untilUnchanged(cluster);
    const now = (await rolling()).filter((name) => !done.has(name));
    expect(now).toHaveLength(expected);
    for (const name of now) {
      done.add(name);
    }
    await Promise.all(now.map(serve));
  }
  await untilUnchanged(cluster);
  expect(await queued()).toEqual([]);
  for (const name of names) {
    expect(await generationOf(name)).toBe((before.get(name) ?? 0) + 1);
  }
});

// Shows: docs/variable-groups.md#changes: a project with a volume | returns
test("a project with a volume returns to the values that served when it does not start with others, and keeps them", async () => {
  await group("broken", { MODE: "good" });
  const storage = { persistent: true, capacity: 1, dirPathToPersist: "/data" };
  await createWorker("disk", { storage, variableGroups: ["broken"] });
  await has("disk", { MODE: "good" });
  await serve("disk");
  const served = await envFromOf("disk");
  await untilUnchanged(cluster);
  await group("broken", { MODE: "bad" });
  await has("disk", { MODE: "bad" });
  await eventually(async () => (await deploymentsOf("disk"))[0]?.status === "in_progress");
  aheadMs += 3_600_000;
  operator.catalogChanged();
  await has("disk", { MODE: "good" });
  // The Deployment is applied before the status is written.
  await eventually(async () => (await deploymentsOf("disk"))[0]?.status === "failed");
  expect((await deploymentsOf("disk")).map(({ status, valuesOnly }) => [status, valuesOnly])).toEqual([
    ["failed", true],
    ["succeeded", undefined],
  ]);
  expect(await envFromOf("disk")).toEqual(served);
  await untilUnchanged(cluster);
  aheadMs += 3_600_000;
  operator.catalogChanged();
  await untilUnchanged(cluster);
  expect(await variablesOf("disk")).toEqual({ MODE: "good" });
  await group("broken", { MODE: "mended" });
  await has("disk", { MODE: "mended" });
  await serve("disk");
});

// Shows: docs/variable-groups.md#values: instances, pre-deploy commands, job runs
test("a job's runs are created from the values", async () => {
  await group("nightly-group", { TOKEN: "abc" });
  await cluster.client.create<Project>(
    projectResource,
    exampleJob(ref("nightly"), { variableGroups: ["nightly-group"] }),
  );
  await eventually(() => envFromOf("nightly", resources.cronJobs));
  expect(await variablesOf("nightly", resources.cronJobs)).toEqual({ TOKEN: "abc" });
});

describe("a Secret that the External Secrets Operator writes", () => {
  /** As its version 0.20 creates and updates the Secret of an ExternalSecret with `creationPolicy: Owner`. */
  const written = (values: Record<string, string>, hash: string) => ({
    apiVersion: "v1",
    kind: "Secret",
    type: "Opaque",
    immutable: false,
    metadata: {
      name: "shop-vault",
      namespace,
      labels: {
        "reconcile.external-secrets.io/created-by":
          "8a7fca7a16cd4d1b7c2cf9d76b1e3df2cba0f5b5b6b2a1c1a5f0d1c4",
        "reconcile.external-secrets.io/managed": "true",
      },
      annotations: { "reconcile.external-secrets.io/data-hash": hash },
      ownerReferences: [
        {
          apiVersion: "external-secrets.io/v1",
          kind: "ExternalSecret",
          name: "shop-vault",
          uid: "5d1a1df3-4bd9-4f3e-93b2-1a7f3f1a2b3c",
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    data: base64(values),
  });
  const fieldManager = "externalsecrets.external-secrets.io/shop-vault";
  const secretOf = () => cluster.client.get<SecretObject>(resources.secrets, ref("shop-vault"));
  /** It updates the whole object as it read it, which is a PUT with a resourceVersion. */
  async function update(values: Record<string, string>, hash: string): Promise<void> {
    const live = await secretOf();
    const { labels, annotations, ownerReferences } = written(values, hash).metadata;
    const object = {
      ...live,
      metadata: { ...live.metadata, labels, annotations, ownerReferences },
      data: base64(values),
    };
    await cluster.client.replace(resources.secrets, object, { fieldManager });
  }

  test("may come after the project", async () => {
    await createWorker("vault", { envsFrom: [{ name: "shop-vault" }] });
    await condition("vault", "Accepted=False/SecretNotFound");
    await cluster.client.create(resources.secrets, written({ TOKEN: "one" }, "aaa"), { fieldManager });
    await has("vault", { TOKEN: "one" });
    await serve("vault");
  });

  // Shows: docs/variable-groups.md#secrets-that-others-write: rolls the project once
  test("rolls the project once when its values change, and not when only its annotations do", async () => {
    await untilUnchanged(cluster);
    const before = await generationOf("vault");
    await update({ TOKEN: "one" }, "bbb");
    await untilUnchanged(cluster);
    expect(await generationOf("vault")).toBe(before);
    await update({ TOKEN: "two", MORE: "x" }, "ccc");
    await has("vault", { TOKEN: "two", MORE: "x" });
    await serve("vault");
    await untilUnchanged(cluster);
    expect(await generationOf("vault")).toBe(before + 1);
    expect(JSON.stringify(await get("vault"))).not.toContain("two");
  });

  test("is not the project's own, and stays when that is deleted", async () => {
    expect((await secretOf()).metadata?.ownerReferences?.map(({ kind }) => kind)).toEqual(["ExternalSecret"]);
    expect((await secretOf()).metadata?.labels).not.toHaveProperty("slipway.dev/project");
  });

  test("keeps its last values in the pods' Secret while it does not exist, and the project says so", async () => {
    const before = await envFromOf("vault");
    await cluster.client.delete(resources.secrets, ref("shop-vault"));
    await condition("vault", "Accepted=False/SecretNotFound");
    expect(await envFromOf("vault")).toEqual(before);
    expect(await variablesOf("vault")).toEqual({ TOKEN: "two", MORE: "x" });
    await cluster.client.create(resources.secrets, written({ TOKEN: "two", MORE: "x" }, "ccc"), {
      fieldManager,
    });
    await condition("vault", "Accepted=True/Accepted");
    await untilUnchanged(cluster);
    expect(await envFromOf("vault")).toEqual(before);
  });

  test("can be the Secret of a group", async () => {
    const spec = { displayName: "Vault", secretRef: { name: "shop-vault" } };
    await cluster.client.create<VariableGroup>(variableGroupResource, {
      apiVersion: "slipway.dev/v1alpha1",
      kind: "VariableGroup",
      metadata: ref("vault-group"),
      spec,
    });
    await createWorker("through-group", { variableGroups: ["vault-group"] });
    await has("through-group", { TOKEN: "two" });
    await serve("through-group");
    await update({ TOKEN: "three" }, "ddd");
    await has("through-group", { TOKEN: "three" });
    await has("vault", { TOKEN: "three" });
  });
});
