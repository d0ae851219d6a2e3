import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import {
  credentialKeys,
  credentialsHash,
  type DatabaseCredentials,
  labels,
  type Project,
} from "@slipway/crds";
import { systemClock } from "@slipway/process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exampleDatabase } from "../../../test/kit/databases/examples.ts";
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
import { exampleJob, exampleProject, exampleWorker } from "../../../test/kit/operator/projects.ts";
import { projectResource } from "../resources.ts";

/** An operator on a real apiserver without kubelets: tests play the engine, which reports the password that it has in force. */

const namespace = "slipway-org-alpha";
const image = { image: "registry.example/postgresql:17", uid: 100, gid: 102, features: {} };
let cluster: TestCluster;
let operator: TestOperator;
/** How far the operator's clock is ahead. */
let aheadMs = 0;

/** Lets the time pass in which what was replaced is kept. */
function passGrace(): void {
  aheadMs += 360_000;
  operator.catalogChanged();
}

beforeAll(async () => {
  cluster = await startCluster();
  await cluster.client.create(resources.namespaces, { metadata: { name: "slipway-system" } });
  operator = await startOperator(cluster, {
    listOrganizations: async () => ["alpha", "beta"],
    databaseImages: { postgresql: { "17": image } },
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
const referring = (name: string, ...references: string[]) => ({
  name,
  references: references.map((reference) => ({ reference })),
});
const condition = (name: string, expected: string, where = namespace) =>
  eventually(async () => (await conditionsOf(cluster.client, ref(name, where))).includes(expected));
const messageOf = async (name: string, type: string) =>
  (await get(name)).status?.conditions?.find((one) => one.type === type)?.message;

async function createSecret(name: string, stringData: Record<string, string>, where = namespace) {
  await cluster.client.create(resources.secrets, {
    metadata: ref(name, where),
    stringData,
  } as KubernetesObject);
}

async function createDatabase(id: string, name: string, where = namespace): Promise<void> {
  const example = exampleDatabase({ name, instances: 1 });
  await cluster.client.create<Project>(projectResource, { ...example, metadata: ref(id, where) });
}

const createWorker = (name: string, spec: Partial<Project["spec"]>, where = namespace) =>
  cluster.client.create<Project>(projectResource, exampleWorker(ref(name, where), spec));

async function credentialsOf(id: string): Promise<DatabaseCredentials> {
  const { data = {} } = await eventually(() =>
    cluster.client.getOrUndefined<SecretObject>(resources.secrets, ref(`${id}-credentials`)),
  );
  return Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]),
  );
}

/** Plays the engine: it has taken over what the Secret has now. */
async function takeOver(id: string): Promise<DatabaseCredentials> {
  const credentials = await credentialsOf(id);
  await eventually(async () => (await get(id)).status?.database?.inside);
  const database = { credentialsHash: credentialsHash(credentials), bootstrappedAt: "2026-01-01T00:00:00Z" };
  const patch = { status: { database } };
  await cluster.client.patch(projectResource, ref(id), patch, { subresource: "status" });
  return credentials;
}

/** Names of the Secrets that a container's variables come from. */
const envFromOf = (name: string, resource = resources.deployments) =>
  envFromIn(cluster.client, ref(name), resource);

/** The variables that a container starts with. */
const variablesOf = (name: string, resource = resources.deployments) =>
  variablesIn(cluster.client, ref(name), resource);

/** What the Deployment is to run, runs: its instances take the place of those before. */
const serve = (name: string) =>
  deploy(cluster.client, ref(name), "registry.example/team/worker:1.0.0", `sha256:${"a".repeat(64)}`);

const versionOf = async (name: string) =>
  (await cluster.client.get(resources.deployments, ref(name))).metadata?.resourceVersion;

describe("a worker that is created before the database that it refers to", () => {
  const host = `pshop.${namespace}.svc`;

  // Shows: docs/references.md#waiting-and-what-is-missing: false | `ReferenceUnknown`
  test("says that there is none, and nothing of it runs", async () => {
    await createSecret("web-env", {
      DATABASE_URL: `\${project:shop-db.connection_string}`,
      HOST: `tcp://\${project:shop-db.host}:\${project:shop-db.port}`,
      TEXT: `$\${project:shop-db.password}`,
      LOG_LEVEL: "info",
    });
    const references = ["shop-db.connection_string", "shop-db.host", "shop-db.port"];
    await createWorker("web", { envsFrom: [referring("web-env", ...references)] });
    await condition("web", "ReferencesReady=False/ReferenceUnknown");
    expect(await messageOf("web", "ReferencesReady")).toBe(
      "DATABASE_URL -> shop-db.connection_string: the organization has no project shop-db",
    );
    expect((await get("web")).status?.phase).toBe("creating");
    expect(await envFromOf("web")).toBeUndefined();
  });

  // Shows: docs/references.md#waiting-and-what-is-missing: false | `ReferencePending`
  test("says that it waits for the database once there is one", async () => {
    await createDatabase("pshop", "shop-db");
    await condition("web", "ReferencesReady=False/ReferencePending");
    expect(await messageOf("web", "Ready")).toBe(
      "DATABASE_URL -> shop-db.connection_string: the database shop-db is not provisioned yet",
    );
  });

  // Shows: docs/references.md#waiting-and-what-is-missing: true | | every reference is resolved
  test("starts with the values once the database has its password, and its status has none of them", async () => {
    const { password = "" } = await takeOver("pshop");
    await condition("web", "ReferencesReady=True/ReferencesResolved");
    await eventually(() => envFromOf("web"));
    expect(await envFromOf("web")).toEqual(["web-env", expect.stringMatching(/^web-refs-[0-9a-f]{12}$/)]);
    expect(await variablesOf("web")).toEqual({
      DATABASE_URL: `postgresql://app:${password}@${host}:5432/app`,
      HOST: `tcp://${host}:5432`,
      TEXT: `\${project:shop-db.password}`,
      LOG_LEVEL: "info",
    });
    expect(JSON.stringify(await get("web"))).not.toContain(password);
    await serve("web");
    await eventually(async () => (await get("web")).status?.phase === "running");
  });

  test("is left alone while nothing changes", async () => {
    await untilUnchanged(cluster);
    const before = (await cluster.operatorWrites()).length;
    operator.catalogChanged();
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    const writes = (await cluster.operatorWrites()).slice(before);
    // The database is without its engine here, and reports that.
    expect(writes.filter((write) => !write.includes("/pshop/") && !write.includes("/events"))).toEqual([]);
  });

  test("is rolled when the password is renewed, from the moment at which the engine has taken it over", async () => {
    await createWorker("bystander", {});
    await eventually(() => exists(cluster.client, resources.deployments, ref("bystander")));
    await untilUnchanged(cluster);
    const [bystander, before] = [await versionOf("bystander"), await envFromOf("web")];
    const { password = "" } = await credentialsOf("pshop");
    const renewed = { password: "renewed", [credentialKeys.previousPassword]: password };
    const data = Object.fromEntries(
      Object.entries(renewed).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
    );
    await cluster.client.patch(resources.secrets, ref("pshop-credentials"), { data });
    await untilUnchanged(cluster);
    expect(await envFromOf("web")).toEqual(before);

    await takeOver("pshop");
    await eventually(async () => (await envFromOf("web"))?.[1] !== before?.[1]);
    expect(await variablesOf("web")).toMatchObject({
      DATABASE_URL: `postgresql://app:renewed@${host}:5432/app`,
    });
    // Instances of the version before may start until the new one serves.
    const [, old = ""] = before ?? [];
    expect(await exists(cluster.client, resources.secrets, ref(old))).toBe(true);
    await serve("web");
    await eventually(async () => {
      const deployments = (await get("web")).status?.deployments ?? [];
      return deployments.map(({ status }) => status).join() === "succeeded,succeeded";
    });
    expect(await exists(cluster.client, resources.secrets, ref(old))).toBe(true);
    expect(await versionOf("bystander")).toBe(bystander);
    passGrace();
    await eventually(async () => !(await exists(cluster.client, resources.secrets, ref(old))));
  });

  test("keeps the last values when the database is deleted, and says so", async () => {
    const before = await envFromOf("web");
    await cluster.client.delete(projectResource, ref("pshop"));
    await condition("web", "ReferencesReady=False/ReferenceUnknown");
    expect(await messageOf("web", "ReferencesReady")).toMatch(
      /no project shop-db\. The last values are kept\.$/,
    );
    await untilUnchanged(cluster);
    expect(await envFromOf("web")).toEqual(before);
    expect(await conditionsOf(cluster.client, ref("web"))).toContain("Ready=True/Ready");
  });

  test("has no Secret of values left once its variables refer to nothing", async () => {
    await createSecret("web-env-0123456789ab", { LOG_LEVEL: "debug" });
    await cluster.client.patch(projectResource, ref("web"), {
      spec: { envsFrom: [{ name: "web-env-0123456789ab" }] },
    });
    await eventually(async () => (await envFromOf("web"))?.join() === "web-env-0123456789ab");
    await serve("web");
    passGrace();
    await eventually(async () => {
      const secrets = await cluster.client.listAll(resources.secrets, { namespace });
      return secrets.every(({ metadata }) => !metadata?.name?.startsWith("web-refs-"));
    });
    expect((await conditionsOf(cluster.client, ref("web"))).join()).not.toContain("ReferencesReady");
  });
});

describe("a reference that is bound to an id", () => {
  test("stays with its project through another name, and does not go over to one that is called the same", async () => {
    await createDatabase("pbound", "orders-db");
    await takeOver("pbound");
    await createSecret("bound-env", { DB: `\${project:orders-db.host}` });
    const references = [{ reference: "orders-db.host", project: "pbound" }];
    await createWorker("bound", { envsFrom: [{ name: "bound-env", references }] });
    await condition("bound", "ReferencesReady=True/ReferencesResolved");
    await cluster.client.patch(projectResource, ref("pbound"), { spec: { name: "former-orders" } });
    await createDatabase("pother", "orders-db");
    await takeOver("pother");
    await untilUnchanged(cluster);
    expect(await variablesOf("bound")).toEqual({ DB: `pbound.${namespace}.svc` });
    await cluster.client.delete(projectResource, ref("pbound"));
    await condition("bound", "ReferencesReady=False/ReferenceUnknown");
    expect(await variablesOf("bound")).toEqual({ DB: `pbound.${namespace}.svc` });
  });
});

describe("refused with the path of the reference:", () => {
  const refused = async (id: string, value: string, references: string[], expected: string) => {
    await createSecret(`${id}-env`, { PEER: value });
    await createWorker(id, { envsFrom: [referring(`${id}-env`, ...references)] });
    await condition(id, `ReferencesReady=False/${expected}`);
    return messageOf(id, "ReferencesReady");
  };

  test("what the spec does not name, so that a Secret alone reads nothing", async () => {
    await createDatabase("psecret", "secret-db");
    const message = await refused("undeclared", `\${project:secret-db.password}`, [], "ReferenceInvalid");
    expect(message).toBe("PEER -> secret-db.password is not among the references of the spec");
    expect((await get("undeclared")).status?.phase).toBe("failed");
  });

  test("what such a project does not offer", async () => {
    const text = "psecret.internal_url";
    const message = await refused("member", `\${project:${text}}`, [text], "ReferenceInvalid");
    expect(message).toContain("PEER -> psecret.internal_url: a project of type postgresql offers");
  });

  test("broken syntax", async () => {
    expect(await refused("broken", `\${project:psecret}`, [], "ReferenceInvalid")).toContain("PEER -> ");
  });

  test("a name that two projects have", async () => {
    await createDatabase("ptwin1", "twin-db");
    await createDatabase("ptwin2", "twin-db");
    const text = "twin-db.host";
    expect(await refused("twins", `\${project:${text}}`, [text], "ReferenceUnknown")).toContain(
      "ptwin1, ptwin2",
    );
  });

  test("another organization's project, as one that does not exist", async () => {
    await createDatabase("pforeign", "foreign-db", "slipway-org-beta");
    const text = "pforeign.host";
    expect(await refused("foreign", `\${project:${text}}`, [text], "ReferenceUnknown")).toBe(
      "PEER -> pforeign.host: the organization has no project pforeign",
    );
  });

  // Shows: docs/references.md#waiting-and-what-is-missing: false | `ReferenceInvalid`, `ReferenceCycle`
  test("a cycle", async () => {
    await createSecret("cycle-a-env", { PEER: `\${project:cycle-b.internal_url}` });
    await createSecret("cycle-b-env", { PEER: `\${project:cycle-a.internal_url}` });
    for (const [id, peer] of [
      ["cycle-a", "cycle-b"],
      ["cycle-b", "cycle-a"],
    ] as const) {
      const envsFrom = [referring(`${id}-env`, `${peer}.internal_url`)];
      const spec = { envsFrom, exposure: "private" as const };
      await cluster.client.create<Project>(projectResource, exampleProject(ref(id), spec));
    }
    await condition("cycle-b", "ReferencesReady=False/ReferenceCycle");
    expect(await messageOf("cycle-b", "ReferencesReady")).toContain("cycle-b -> cycle-a -> cycle-b");
  });
});

// Shows: docs/references.md#values: instances, pre-deploy commands, job runs | the value
test("a job's runs are created from the values", async () => {
  await createDatabase("pjobs", "jobs-db");
  const { password } = await takeOver("pjobs");
  await createSecret("job-env", { PASSWORD: `\${project:jobs-db.password}` });
  const envsFrom = [referring("job-env", "jobs-db.password")];
  await cluster.client.create<Project>(projectResource, exampleJob(ref("nightly"), { envsFrom }));
  await eventually(() => envFromOf("nightly", resources.cronJobs));
  expect(await variablesOf("nightly", resources.cronJobs)).toEqual({ PASSWORD: password });
});

test("the version that a project with a volume would return to keeps its values, too", async () => {
  await createDatabase("pvolume", "volume-db");
  await takeOver("pvolume");
  for (const name of ["kept-one", "kept-two"]) {
    await createSecret(name, { [name.toUpperCase().replace("-", "_")]: `\${project:volume-db.host}` });
  }
  const storage = { persistent: true, capacity: 1, dirPathToPersist: "/data" };
  await createWorker("kept", { storage, envsFrom: [referring("kept-one", "volume-db.host")] });
  await eventually(() => envFromOf("kept"));
  await serve("kept");
  await eventually(async () => (await get("kept")).status?.deployments?.[0]?.status === "succeeded");
  const envsFrom = [referring("kept-two", "volume-db.host")];
  await cluster.client.patch(projectResource, ref("kept"), { spec: { envsFrom } });
  const { status } = await eventually(async () => {
    const project = await get("kept");
    return project.status?.deployments?.length === 2 && project.status.references?.length === 2 && project;
  });
  expect(status?.references?.map(({ secret }) => secret).sort()).toEqual(["kept-one", "kept-two"]);
  for (const { resolved } of status?.references ?? []) {
    expect(await exists(cluster.client, resources.secrets, ref(resolved))).toBe(true);
  }
});

// Shows: docs/references.md#values: instances, pre-deploy commands, job runs | the value
test("a pre-deploy command starts from the values, and the deployment waits for both", async () => {
  await createDatabase("pmigrated", "migrated-db");
  await createSecret("migrated-env", { DATABASE_PASSWORD: `\${project:migrated-db.password}` });
  const envsFrom = [referring("migrated-env", "migrated-db.password")];
  await createWorker("migrated", { envsFrom, preDeployCommand: ["migrate"] });
  const jobs = () =>
    cluster.client.listAll<KubernetesObject>(resources.jobs, {
      namespace,
      labelSelector: `${labels.preDeploy}=migrated`,
    });
  await condition("migrated", "ReferencesReady=False/ReferencePending");
  expect(await jobs()).toEqual([]);
  const { password } = await takeOver("pmigrated");
  const [job] = await eventually(async () => {
    const found = await jobs();
    return found.length > 0 && found;
  });
  const name = job?.metadata?.name ?? "";
  expect(await variablesOf(name, resources.jobs)).toEqual({ DATABASE_PASSWORD: password });
  expect(await envFromOf("migrated")).toBeUndefined();
});
