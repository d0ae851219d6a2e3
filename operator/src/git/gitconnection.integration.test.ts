import { type KubernetesObject, Manager, resources } from "@slipway/controller-runtime";
import { finalizers, type GitConnection, type Project } from "@slipway/crds";
import { GitError, type GitProvider, sealRepositoryId } from "@slipway/git";
import { silentLogger } from "@slipway/process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { grantedConfig } from "../../../test/kit/operator/grant.ts";
import { eventually, startCluster, type TestCluster } from "../../../test/kit/operator/harness.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { gitConnectionResource, projectResource } from "../resources.ts";
import { addGitConnectionController, organizationRules, rules } from "./controller.ts";

/** Connections on a real apiserver, with exactly the chart's permissions; the Git server is a fake. */

const namespace = "slipway-org-alpha";
const url = "https://slipway.example/v1/git/hooks/g1";
const ref = (name: string) => ({ namespace, name });
const stop = new AbortController();
let cluster: TestCluster;
let running: Promise<void>;
let isAway = false;
/** Repositories with a hook at the server. */
const hooked = new Set<string>();

const provider = {
  removeHooks: async (repository: string) => {
    if (isAway) {
      throw new GitError("ProviderUnavailable", "it does not answer");
    }
    hooked.delete(repository);
  },
} as unknown as GitProvider;

beforeAll(async () => {
  cluster = await startCluster();
  await cluster.client.create<KubernetesObject>(resources.namespaces, { metadata: { name: namespace } });
  const projects = [{ apiGroups: ["slipway.dev"], resources: ["projects"], verbs: ["get", "list", "watch"] }];
  const config = await grantedConfig(cluster, namespace, {
    cluster: [...rules, ...projects],
    namespaced: { [namespace]: organizationRules },
  });
  const manager = new Manager({
    name: "slipway.dev/operator",
    cluster: config,
    identity: "test",
    log: silentLogger,
    gracePeriodMs: 1,
  });
  addGitConnectionController(manager, {
    projects: manager.store<Project>(projectResource),
    open: async () => provider,
  });
  running = manager.run(stop.signal);
}, 240_000);
afterAll(async () => {
  stop.abort();
  await running;
  await cluster?.stop();
});

async function connection(name: string, repositories: readonly string[]): Promise<void> {
  for (const repository of repositories) {
    hooked.add(repository);
  }
  await cluster.client.create<GitConnection>(gitConnectionResource, {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "GitConnection",
    metadata: { name, namespace },
    spec: {
      providerId: "forgejo",
      instanceUrl: "https://git.example.com",
      displayName: "Git",
      credentialRef: { name: "g1-credential" },
      revision: 1,
    },
  });
  const status = { hooks: repositories.map((repositoryId) => ({ repositoryId, url })) };
  await cluster.client.patch(gitConnectionResource, ref(name), { status }, { subresource: "status" });
}

async function project(name: string, connectionId: string, repository: string): Promise<void> {
  const { spec } = exampleProject(ref(name));
  const { image: _image, ...rest } = spec;
  const repositoryId = sealRepositoryId(connectionId, repository);
  await cluster.client.create<Project>(projectResource, {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: { name, namespace },
    spec: { ...rest, source: { connectionId, repositoryId, branch: "main", autoDeploy: true }, build: {} },
  });
}
const live = (name: string) => cluster.client.getOrUndefined<GitConnection>(gitConnectionResource, ref(name));
const noted = async (name: string) =>
  (await live(name))?.status?.hooks?.map(({ repositoryId }) => repositoryId);

// Shows: docs/git.md#hooks: it is deleted with the last one, and deletion is retried until it succeeds
test("a changed source removes its hook, and a deletion by kubectl waits for the others", async () => {
  await project("pone", "g1", "1");
  await project("ptwo", "g1", "2");
  await connection("g1", ["1", "2"]);
  await eventually(async () =>
    Boolean((await live("g1"))?.metadata.finalizers?.includes(finalizers.gitConnection)),
  );
  expect([...hooked]).toEqual(["1", "2"]);
  const source = { repositoryId: sealRepositoryId("g1", "3") };
  await cluster.client.patch(projectResource, ref("ptwo"), { spec: { source } });
  await eventually(async () => String(await noted("g1")) === "1");
  expect([...hooked]).toEqual(["1"]);

  isAway = true;
  await cluster.client.delete(gitConnectionResource, ref("g1"), {});
  expect(await live("g1")).toBeDefined();
  isAway = false;
  await eventually(async () => (await live("g1")) === undefined);
  expect([...hooked]).toEqual([]);
});

// Shows: docs/git.md#hooks: a revocation that was interrupted is completed by the operator
test("an interrupted revocation is completed", async () => {
  await project("pseven", "g2", "7");
  await connection("g2", ["7"]);
  await eventually(async () => Boolean((await live("g2"))?.metadata.finalizers?.length));
  const revokedAt = new Date(Date.now() - 60_000).toISOString();
  await cluster.client.patch(gitConnectionResource, ref("g2"), { spec: { revokedAt, revision: 2 } });
  await eventually(async () => (await live("g2")) === undefined);
  expect([...hooked]).toEqual([]);
});
