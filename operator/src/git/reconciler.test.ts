import { KubeClient, resources, Store } from "@slipway/controller-runtime";
import { finalizers, type GitConnection, type Project } from "@slipway/crds";
import { GitError, type GitProvider, sealRepositoryId } from "@slipway/git";
import { silentLogger } from "@slipway/process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { gitConnectionResource, projectResource } from "../resources.ts";
import { unwantedHooks } from "./hooks.ts";
import { gitConnectionReconciler, HOOK_REMOVAL_TIMEOUT_MS } from "./reconciler.ts";

const namespace = "slipway-org-alpha";
const ref = { namespace, name: "g1" };
const url = "https://slipway.example/v1/git/hooks/g1";
const credential = { name: "g1-credential" };

let api: FakeApiserver;
let client: KubeClient;
let clock: FakeClock;
let connections: Store<GitConnection>;
let projects: Store<Project>;
/** Repositories with a hook at the server. */
let hooked: Set<string>;
let failing: GitError | undefined;
let beforeRemoval: (() => Promise<void>) | undefined;

const provider = {
  removeHooks: async (repository: string) => {
    if (failing) {
      throw failing;
    }
    hooked.delete(repository);
    await beforeRemoval?.();
  },
  ensureHook: async (repository: string) => {
    hooked.add(repository);
    return { id: "1" };
  },
} as unknown as GitProvider;

beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
  clock = new FakeClock();
  connections = new Store<GitConnection>();
  projects = new Store<Project>();
  hooked = new Set(["1", "2"]);
  failing = undefined;
  beforeRemoval = undefined;
  await client.create(resources.secrets, {
    metadata: { name: credential.name, namespace },
    data: { token: Buffer.from("t").toString("base64"), hookSecret: Buffer.from("s").toString("base64") },
  } as never);
  await connection();
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

async function connection(spec: object = {}, hooks = ["1", "2"]): Promise<void> {
  const made = await client.create<GitConnection>(gitConnectionResource, {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "GitConnection",
    metadata: { name: "g1", namespace },
    spec: {
      providerId: "forgejo",
      instanceUrl: "https://git.example.com",
      displayName: "Git",
      credentialRef: credential,
      revision: 1,
      ...spec,
    },
  });
  const status = { hooks: hooks.map((repositoryId) => ({ repositoryId, url })) };
  await client.patch(
    gitConnectionResource,
    ref,
    { metadata: { uid: made.metadata.uid }, status },
    {
      subresource: "status",
    },
  );
  await sync();
}

async function project(repository: string, change: object = {}): Promise<void> {
  const { spec, metadata } = exampleProject({ namespace, name: `p${repository}` });
  const { image: _image, ...rest } = spec;
  const repositoryId = sealRepositoryId("g1", repository);
  const source = { connectionId: "g1", repositoryId, branch: "main", autoDeploy: true, ...change };
  await client.create<Project>(projectResource, {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: { name: metadata.name, namespace },
    spec: { ...rest, source, build: {} },
  } as Project);
  await sync();
}

async function sync(): Promise<void> {
  const found = await client.getOrUndefined<GitConnection>(gitConnectionResource, ref);
  connections.replace(found ? [found] : [], String(Date.now()));
  projects.replace(await client.listAll<Project>(projectResource, { namespace }), String(Date.now()));
}

async function reconcile(open: () => Promise<GitProvider> = async () => provider): Promise<unknown> {
  await sync();
  const run = gitConnectionReconciler({ client, clock, connections, projects, open });
  const result = await run(ref, { signal: new AbortController().signal, log: silentLogger, clock }).then(
    (value) => value,
    (error: Error & { reason?: string }) => error.reason ?? error,
  );
  await sync();
  return result;
}
const live = () => client.getOrUndefined<GitConnection>(gitConnectionResource, ref);
const noted = async () => (await live())?.status?.hooks?.map(({ repositoryId }) => repositoryId);

describe("hooks", () => {
  // Shows: docs/git.md#hooks: a hook exists as long as a project is deployed by it
  test("stay for projects that they publish, and block the connection's deletion", async () => {
    await project("1");
    await project("2", {
      autoDeploy: false,
      versionDeploy: { enabled: true, event: "tag", tagPattern: "*" },
    });
    expect(await reconcile()).toBeUndefined();
    expect([...hooked]).toEqual(["1", "2"]);
    expect((await live())?.metadata.finalizers).toEqual([finalizers.gitConnection]);
  });

  // Shows: docs/git.md#hooks: it is deleted with the last one, and deletion is retried until it succeeds
  test("are removed when they publish no project any more", async () => {
    await project("1");
    await project("2", { autoDeploy: false });
    await reconcile();
    expect([[...hooked], await noted()]).toEqual([["1"], ["1"]]);
  });

  test("stay for a project that the cache lacks", async () => {
    await project("1");
    await project("2");
    projects.replace([], "0");
    const run = gitConnectionReconciler({ client, clock, connections, projects, open: async () => provider });
    await run(ref, { signal: new AbortController().signal, log: silentLogger, clock });
    expect([...hooked]).toEqual(["1", "2"]);
  });

  // Shows: docs/git.md#hooks: it is deleted with the last one, and deletion is retried until it succeeds
  test("that a server does not remove are retried", async () => {
    failing = new GitError("ProviderUnavailable", "it does not answer");
    expect(await reconcile()).toBe("HooksRemain");
    expect(await noted()).toEqual(["1", "2"]);
    failing = undefined;
    expect(await reconcile()).toBeUndefined();
    expect([[...hooked], await noted()]).toEqual([[], []]);
  });

  test("are recreated when one was requested during its removal", async () => {
    await project("1");
    beforeRemoval = async () => {
      beforeRemoval = undefined;
      await project("2");
      const status = { hooks: ["1", "2"].map((repositoryId) => ({ repositoryId, url })) };
      await client.patch(gitConnectionResource, ref, { metadata: { labels: { touched: "yes" } }, status });
    };
    expect(await reconcile()).toBe("Conflict");
    expect([...hooked].toSorted()).toEqual(["1", "2"]);
  });
});

describe("a connection", () => {
  // Shows: docs/git.md#hooks: `kubectl delete gitconnection` waits for them, an hour at most
  test("that is deleted is finalized once its hooks are removed", async () => {
    await project("1");
    await project("2");
    await reconcile();
    await client.delete(gitConnectionResource, ref, {});
    failing = new GitError("ProviderUnavailable", "it does not answer");
    expect(await reconcile()).toBe("HooksRemain");
    expect(await live()).toBeDefined();
    failing = undefined;
    await reconcile();
    expect([[...hooked], await live()]).toEqual([[], undefined]);
  });

  // Shows: docs/git.md#hooks: `kubectl delete gitconnection` waits for them, an hour at most
  test("that is deleted is not blocked for ever, nor without a credential", async () => {
    await project("1");
    await project("2");
    await reconcile();
    await client.delete(gitConnectionResource, ref, {});
    const gone = new GitError("CredentialRefused", "the connection's Secret has no token");
    expect(await reconcile(() => Promise.reject(gone))).toBeUndefined();
    expect(await live()).toBeUndefined();

    await connection();
    await reconcile();
    await client.delete(gitConnectionResource, ref, {});
    failing = new GitError("ProviderUnavailable", "it does not answer");
    const at = Date.parse((await live())?.metadata.deletionTimestamp ?? "");
    await clock.advance(at + HOOK_REMOVAL_TIMEOUT_MS + 1_000 - clock.now().getTime());
    expect(await reconcile()).toBeUndefined();
    expect(await live()).toBeUndefined();
  });

  // Shows: docs/git.md#over-v1: `DELETE /v1/git/connections/:connectionId` | `connection`, revoked, and
  test("that was revoked is deleted with its last hook, after the API's grace period", async () => {
    const revokedAt = clock.now().toISOString();
    await client.patch(gitConnectionResource, ref, { spec: { revokedAt } });
    expect(await reconcile()).toEqual({ requeueAfterMs: 15_000 });
    await clock.advance(15_000);
    failing = new GitError("ProviderUnavailable", "it does not answer");
    expect(await reconcile()).toBe("HooksRemain");
    failing = undefined;
    await reconcile();
    await reconcile();
    expect([[...hooked], await live()]).toEqual([[], undefined]);
  });
});

test("of GitHub, hooks are identified by the repository's path", () => {
  const of = (owner: string, autoDeploy = true) => {
    const example = exampleProject({ namespace, name: owner });
    const { image: _image, ...spec } = example.spec;
    const github = { repositoryOwner: owner, repositoryName: "Shop", branch: "main", autoDeploy };
    return { ...example, spec: { ...spec, github } } as Project;
  };
  const hook = (path: string, repositoryId: string) => ({ repositoryId, url, path });
  const github = {
    metadata: { name: "g1", namespace },
    spec: { providerId: "github", installationId: "5" },
    status: { hooks: [hook("acme/shop", "1"), hook("beta/shop", "2"), hook("gone/shop", "3")] },
  } as unknown as GitConnection;
  const unwanted = unwantedHooks(github, [of("Acme"), of("beta", false)]);
  expect(unwanted.map(({ repositoryId }) => repositoryId)).toEqual(["2", "3"]);
});
