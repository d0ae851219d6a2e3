import { KubeClient, type KubernetesObject, type Resource, resources } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TestApiserver } from "../../hack/cluster/apiserver.ts";
import { acquireApiserver } from "../../test/kit/clusters/shared-apiserver.ts";
import { type FixtureResource, validFixtures } from "../../test/kit/crds/fixtures.ts";
import { createObjects } from "./create-objects.ts";
import { objectsOf, restoredResources } from "./objects.ts";
import { beginRestore, endRestore, noteLoaded } from "./progress.ts";
import { newestBackups } from "./summary.ts";

/** From one real kube-apiserver into another: every valid example of every kind that is restored. */

const namespace = "slipway-system";
const organization = "slipway-org-acme";
let apis: TestApiserver[];
let [before, after]: KubeClient[] = [];

const clientOf = ({ kubeconfig }: TestApiserver) =>
  KubeClient.fromConfig(loadKubeConfig({ file: kubeconfig }), { userAgent: "test" });
const resourceOf = (kind: string): Resource | undefined =>
  restoredResources.find((resource) => resource.kind === kind);

type Saved = KubernetesObject & { spec?: object; status?: object; data?: object };

/** Creates an example with its status, in the organization's namespace. */
async function create(
  client: KubeClient,
  fixture: FixtureResource,
  name: string,
): Promise<KubernetesObject | undefined> {
  const resource = resourceOf(fixture.kind);
  if (!resource) {
    return undefined;
  }
  const { status, ...rest } = fixture;
  const place = resource.namespaced ? { namespace: organization } : {};
  const object = { ...rest, metadata: { ...rest.metadata, ...place, name } } as KubernetesObject;
  const created = await client.create(resource, object);
  if (status) {
    await client.patch(resource, { ...place, name }, { status }, { subresource: "status" });
  }
  return created;
}

beforeAll(async () => {
  apis = [await acquireApiserver(), await acquireApiserver()];
  [before, after] = apis.map(clientOf);
  for (const client of [before, after]) {
    await client?.create(resources.namespaces, { metadata: { name: namespace } });
  }
  const labels = { "slipway.dev/organization": "acme", "slipway.dev/role": "organization" };
  await before?.create(resources.namespaces, { metadata: { name: organization, labels } });
});
afterAll(async () => {
  await Promise.all([before?.close(), after?.close()]);
  await Promise.all((apis ?? []).map((api) => api.stop()));
});

const saved: Saved[] = [];
const place = () => ({ client: after as KubeClient, namespace });

async function* each<T>(list: readonly T[]): AsyncGenerator<T> {
  yield* list;
}

describe("a platform of every valid example", () => {
  test("is read, object by object", async () => {
    const client = before as KubeClient;
    let created = 0;
    const named = new Map(
      validFixtures().map(([, fixture]) => [`${fixture.kind} ${fixture.metadata.name}`, fixture]),
    );
    for (const fixture of named.values()) {
      const object = await create(client, fixture, fixture.metadata.name);
      created += object ? 1 : 0;
      if (object?.kind === "Project") {
        const { name = "", uid = "" } = object.metadata ?? {};
        const owner = { apiVersion: object.apiVersion ?? "", kind: "Project", name, uid, controller: true };
        const metadata = { name: `${name}-env`, namespace: organization, ownerReferences: [owner] };
        await client.create(resources.secrets, {
          metadata,
          stringData: { KEY: "value" },
        } as KubernetesObject);
      }
    }
    expect(created).toBeGreaterThan(10);
    const key = {
      metadata: { name: "slipway-token-key", namespace },
      stringData: { "ed25519.pem": "of before" },
    };
    await client.create(resources.secrets, key as KubernetesObject);
    for await (const object of objectsOf({ client, namespace })) {
      saved.push(object);
    }
    const projects = saved.filter(({ kind }) => kind === "Project");
    expect(saved.filter(({ kind }) => kind === "Secret")).toHaveLength(projects.length + 1);
  });

  test("is created on an empty cluster, also when that is repeated, with the same specs, histories and Secrets", async () => {
    const client = after as KubeClient;
    const own = {
      metadata: { name: "slipway-token-key", namespace },
      immutable: true,
      stringData: { "ed25519.pem": "of the new one" },
    };
    await client.create(resources.secrets, own as KubernetesObject);
    const backups = newestBackups();
    for (const object of saved) {
      backups.add(object);
    }
    // As one that was killed in the middle, and run again.
    await createObjects(place(), each(saved.slice(0, Math.floor(saved.length / 2))), backups.names());
    const uids = await createObjects(place(), each(saved), backups.names());
    for (const object of saved) {
      const { name = "", namespace: where, uid = "" } = object.metadata ?? {};
      const resource = resourceOf(object.kind ?? "") as Resource;
      const live = await client.get<Saved>(resource, {
        namespace: resource.namespaced ? where : undefined,
        name,
      });
      expect(live.metadata?.uid).toBe(uids.get(uid));
      expect(live.metadata?.labels ?? {}).toMatchObject(
        object.kind === "Namespace" ? {} : (object.metadata?.labels ?? {}),
      );
      expect(live.data).toEqual(object.data);
      for (const owner of live.metadata?.ownerReferences ?? []) {
        expect([...uids.values()]).toContain(owner.uid);
      }
      const { deployments, planChange } = (object.status ?? {}) as Record<string, { generation?: number }[]>;
      if (deployments) {
        const history = deployments.map(({ generation: _, ...rest }) => rest);
        expect(live.status).toMatchObject({ deployments: history });
      }
      if (planChange) {
        expect(live.status).toMatchObject({ planChange });
      }
    }
  });

  test("is not restored over projects, and by no other backup once one has begun", async () => {
    const rows = async () => 0;
    await expect(beginRestore(place(), "one", rows)).rejects.toThrow("in use");
    const empty = { client: before as KubeClient, namespace: organization };
    await expect(beginRestore(empty, "one", async () => 1)).rejects.toThrow("in use");
  });

  test("is restored once: what has begun may be continued until it has ended", async () => {
    const client = after as KubeClient;
    const project = resourceOf("Project") as Resource;
    const { items } = await client.list(project);
    for (const { metadata } of items) {
      const ref = { namespace: metadata?.namespace, name: metadata?.name ?? "" };
      await client.patch(project, ref, { metadata: { finalizers: null } });
      await client.delete(project, ref);
    }
    expect(await beginRestore(place(), "one", async () => 0)).toBe(false);
    // Its own rows.
    expect(await beginRestore(place(), "one", async () => 7)).toBe(false);
    await noteLoaded(place(), "one");
    expect(await beginRestore(place(), "one", async () => 7)).toBe(true);
    await expect(beginRestore(place(), "other", async () => 7)).rejects.toThrow("in use");
    await endRestore(place(), "one");
    await expect(beginRestore(place(), "one", async () => 7)).rejects.toThrow("in use");
  });
});
