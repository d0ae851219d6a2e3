import { type Build, firstBuildId, organizationNamespace, type Project } from "@slipway/crds";
import { sealRepositoryId } from "@slipway/git";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type MemoryBuilds, memoryBuilds } from "../../../../test/kit/api-server/builds.ts";
import { FAKE_SHA, type FakeGit, fakeGit, putConnection } from "../../../../test/kit/api-server/git.ts";
import {
  exampleBody,
  type FakeHarness,
  repositoryIds,
  startFakeHarness,
} from "../../../../test/kit/api-server/harness.ts";
import { statusAndCode } from "../../../../test/kit/api-server/status-and-code.ts";
import { eventually } from "../../../../test/kit/processes/eventually.ts";
import { githubOf } from "../../git/routes/github.ts";
import { buildResource, gitConnectionResource, projectResource } from "../../resources.ts";

/** What the operations make of requests. The ledger is in memory here, and the Git server in this process. */

const ORGANIZATION = "builds";
const NAMESPACE = organizationNamespace(ORGANIZATION);
const TAGGED = "b".repeat(40);
let harness: FakeHarness;
let git: FakeGit;
let store: MemoryBuilds;
let headers: Record<string, string>;
beforeAll(async () => {
  git = fakeGit();
  store = memoryBuilds();
  harness = await startFakeHarness({ git, builds: { store } });
  await harness.namespace(ORGANIZATION);
  await putConnection(harness.kube, ORGANIZATION, "gone");
  headers = await harness.owner(ORGANIZATION);
  // Whether it is blocked is in the ledger, which is unavailable here.
  harness.services.ledger = notBlocked as never;
});
afterAll(() => harness.close());
beforeEach(() => {
  git.failure = undefined;
  git.refs = new Map([
    ["main", FAKE_SHA],
    ["v1.2.0", TAGGED],
    [TAGGED, TAGGED],
    [FAKE_SHA, FAKE_SHA],
  ]);
  git.tags = [
    { name: "v1.2.0", commitSha: TAGGED },
    { name: "v1.1.0", commitSha: FAKE_SHA },
  ];
});

/** A ledger that knows of every organization that it is not blocked. */
const query: object = new Proxy(() => query, {
  get: (_, name) =>
    name === "executeTakeFirst"
      ? async () => ({ id: ORGANIZATION, blocked: false, blocked_at: null })
      : name === "execute"
        ? async () => []
        : name === "then"
          ? undefined
          : () => query,
});
const notBlocked = { selectFrom: () => query };

const source = {
  connectionId: "gone",
  repositoryId: sealRepositoryId("gone", "17"),
  branch: "main",
  autoDeploy: false,
};
const byTag = { enabled: true, event: "tag" as const, tagPattern: "v*" };
let next = 0;
const project = (change: Partial<NonNullable<Project["spec"]["source"]>> = {}): Promise<Project> =>
  harness.project(ORGANIZATION, `pbuild${++next}`, {
    image: undefined,
    source: { ...source, ...change },
    build: {},
  });
const call = (method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE", url: string, payload?: object) =>
  harness.app.inject({ method, url: `/v1/project${url}`, headers, ...(payload ? { payload } : {}) });
const builtOf = (id: string) => harness.kube.get<Build>(buildResource, { namespace: NAMESPACE, name: id });

describe("a deploy", () => {
  // Shows: docs/git.md#source-and-builds-over-v1: `GET /v1/project/:id/builds/:buildId` | the build
  it("builds the newest commit of the branch", async () => {
    const { metadata } = await project();
    const answer = await call("POST", `/${metadata.name}/deploy`);
    expect(answer.statusCode).toBe(202);
    const { build_id } = answer.json().data;
    expect(build_id).toMatch(/^b[a-z0-9]{19}$/);
    const { spec, metadata: created } = await builtOf(build_id);
    expect(spec).toMatchObject({
      projectRef: { name: metadata.name },
      triggeredBy: "manual",
      branch: "main",
      commitSha: FAKE_SHA,
      sourceRevision: 1,
      source,
    });
    expect(created.ownerReferences).toMatchObject([{ kind: "Project", uid: metadata.uid }]);
    const read = (await call("GET", `/${metadata.name}/builds/${build_id}`)).json().data;
    expect(read).toMatchObject({
      id: build_id,
      status: "pending",
      branch: "main",
      commit_sha: FAKE_SHA,
      triggered_by: "manual",
    });
  });

  it("builds the commit that is named, which must be there", async () => {
    const { metadata } = await project();
    const deploy = (body: object) => call("POST", `/${metadata.name}/deploy`, body);
    const { build_id } = (await deploy({ commit_sha: TAGGED })).json().data;
    expect((await builtOf(build_id)).spec).toMatchObject({ branch: "main", commitSha: TAGGED });
    const upper = await deploy({ commit_sha: TAGGED.toUpperCase() });
    expect((await builtOf(upper.json().data.build_id)).spec.commitSha).toBe(TAGGED);
    expect(
      statusAndCode(await call("POST", `/${metadata.name}/github/deploy`, { commit_sha: "a".repeat(64) })),
    ).toEqual([400, "VALIDATION_FAILED"]);
    expect(statusAndCode(await deploy({ branch: "nope" }))).toEqual([404, "GIT_REF_NOT_FOUND"]);
    expect(statusAndCode(await deploy({ commit_sha: "abc" }))).toEqual([400, "VALIDATION_FAILED"]);
  });

  // Shows: docs/git.md#source-and-builds-over-v1: `POST /v1/project/:id/deploy` | 202 and `build_id`.
  // Shows: docs/git.md#source-and-builds-over-v1: 400 `GIT_VERSION_REF_OVERRIDE` | a deploy names a ref
  // Shows: docs/git.md#source-and-builds-over-v1: 409 `GIT_VERSION_NOT_FOUND` | no tag or release matches
  it("publishes the latest version where versions are published, and takes no ref", async () => {
    const { metadata } = await project({ versionDeploy: byTag });
    const { build_id } = (await call("POST", `/${metadata.name}/deploy`)).json().data;
    const { spec } = await builtOf(build_id);
    expect(spec).toMatchObject({ tag: "v1.2.0", commitSha: TAGGED, triggeredBy: "manual" });
    expect(spec.branch).toBeUndefined();
    for (const body of [{ branch: "main" }, { commit_sha: TAGGED }]) {
      const answer = await call("POST", `/${metadata.name}/deploy`, body);
      expect(statusAndCode(answer)).toEqual([400, "GIT_VERSION_REF_OVERRIDE"]);
    }
    git.tags = [];
    expect(statusAndCode(await call("POST", `/${metadata.name}/deploy`))).toEqual([
      409,
      "GIT_VERSION_NOT_FOUND",
    ]);
  });

  // Shows: docs/git.md#source-and-builds-over-v1: 400 `GIT_SOURCE_REQUIRED` | the project has no source
  it("needs a source and a connection that can be used", async () => {
    await harness.project(ORGANIZATION, "pimage");
    expect(statusAndCode(await call("POST", "/pimage/deploy"))).toEqual([400, "GIT_SOURCE_REQUIRED"]);
    expect(statusAndCode(await call("POST", "/pimage/github/deploy"))).toEqual([400, "GIT_SOURCE_REQUIRED"]);
    const { metadata } = await project({ connectionId: "gother" });
    expect(statusAndCode(await call("POST", `/${metadata.name}/deploy`))).toEqual([
      409,
      "GIT_CONNECTION_UNAVAILABLE",
    ]);
  });
});

describe("a project of the legacy kind", () => {
  const github = { repositoryOwner: "acme", repositoryName: "shop", branch: "main", autoDeploy: true };
  const put = () => harness.project(ORGANIZATION, `pgithub${++next}`, { image: undefined, github });
  const settings = (id: string, body: object) => call("PATCH", `/${id}/github/deploy-settings`, body);

  // Shows: docs/git.md#source-and-builds-over-v1: `PATCH /v1/project/:id/github/deploy-settings`
  it("is published in the mode that it is set to", async () => {
    const { name } = (await put()).metadata;
    await putConnection(harness.kube, ORGANIZATION, "ghub");
    const hub = { namespace: NAMESPACE, name: "ghub" };
    await harness.kube.patch(gitConnectionResource, hub, {
      spec: { providerId: "github", installationId: "5", account: "acme" },
    });
    const version_deploy = { enabled: true, event: "release", tag_pattern: "v*" };
    const both = await settings(name, { version_deploy });
    expect(both.json().errors.map(({ field }: { field: string }) => field)).toEqual([
      "version_deploy.enabled",
    ]);
    expect((await settings(name, { auto_deploy: false, version_deploy })).json().data).toEqual({
      repository_owner: "acme",
      repository_name: "shop",
      branch: "main",
      auto_deploy: false,
      version_deploy: { ...version_deploy, include_prereleases: false },
    });
    await harness.kube.delete(gitConnectionResource, hub, {});
    expect(statusAndCode(await settings(name, {}))).toEqual([400, "VALIDATION_FAILED"]);
    expect(statusAndCode(await settings(name, { version_deploy: { tag_pattern: "[a]" } }))).toEqual([
      400,
      "VALIDATION_FAILED",
    ]);
  });

  // Shows: docs/git.md#source-and-builds-over-v1: 409 `GIT_SOURCE_CHANGED` | the repository or branch
  it("is not changed by a caller that has read another source", async () => {
    const { metadata } = await put();
    const read = harness.projects.list(ORGANIZATION).find(({ id }) => id === metadata.name)
      ?.resource as Project;
    const changed = { ...read, spec: { ...read.spec, github: { ...github, branch: "next" } } };
    expect(() => githubOf(changed.spec, read)).toThrow(
      expect.objectContaining({ status: 409, code: "GIT_SOURCE_CHANGED" }),
    );
    expect(githubOf(changed.spec, changed)).toMatchObject({ branch: "next" });
  });

  // Shows: docs/git.md#source-and-builds-over-v1: `POST /v1/project/:id/github/deploy` | as `deploy`
  it("is not built without a GitHub account", async () => {
    const { name } = (await put()).metadata;
    expect(statusAndCode(await call("POST", `/${name}/github/deploy`))).toEqual([
      409,
      "GIT_CONNECTION_UNAVAILABLE",
    ]);
    const commands = await call("PATCH", `/${name}/github/commands`, { build_command: null });
    expect(statusAndCode(commands)).toEqual([400, "GITHUB_REPOSITORY_NOT_CONNECTED"]);
    await harness.project(ORGANIZATION, "pnogithub");
    const none = await call("PATCH", "/pnogithub/github/commands", { build_command: "make" });
    expect(statusAndCode(none)).toEqual([400, "GIT_SOURCE_REQUIRED"]);
  });

  // Shows: docs/git.md#source-and-builds-over-v1: 409 `GIT_SOURCE_CREATION_UNAVAILABLE` | `source` names
  it("is what a connection to GitHub is for, and not source", async () => {
    await putConnection(harness.kube, ORGANIZATION, "ggithub");
    const ref = { namespace: NAMESPACE, name: "ggithub" };
    await harness.kube.patch(gitConnectionResource, ref, { spec: { providerId: "github" } });
    const repositoryId = sealRepositoryId("ggithub", "17");
    const { metadata } = await project({ connectionId: "ggithub", repositoryId });
    const answer = await call("POST", `/${metadata.name}/deploy`);
    expect(statusAndCode(answer)).toEqual([409, "GIT_SOURCE_CREATION_UNAVAILABLE"]);
  });
});

describe("the history", () => {
  // Shows: docs/git.md#source-and-builds-over-v1: `GET /v1/project/:id/builds` | the newest first
  // Shows: docs/git.md#source-and-builds-over-v1: `GET /v1/project/:id/github/builds` | as `builds`
  // Shows: docs/git.md#source-and-builds-over-v1: `GET /v1/project/:id/github/builds/:buildId`
  // Shows: docs/git.md#source-and-builds-over-v1: 404 `BUILD_NOT_FOUND` | the project has no such build
  it("is shown in pages, by branch and status, to its project alone", async () => {
    const { metadata } = await project();
    const url = `/${metadata.name}/builds`;
    for (let index = 0; index < 3; index += 1) {
      await call("POST", `/${metadata.name}/deploy`);
    }
    const page = (await call("GET", `${url}?limit=2`)).json();
    expect(page.data).toHaveLength(2);
    expect(page.pagination).toEqual({ total: 3, page: 1, limit: 2 });
    expect((await call("GET", `${url}?status=failed`)).json().data).toEqual([]);
    expect((await call("GET", `${url}?branch=main`)).json().pagination.total).toBe(3);
    expect((await call("GET", `/${metadata.name}/github/builds`)).json().pagination).toEqual({
      total: 3,
      page: 1,
      limit: 10,
    });
    const other = await project();
    const [{ id }] = page.data;
    expect(statusAndCode(await call("GET", `/${other.metadata.name}/builds/${id}`))).toEqual([
      404,
      "BUILD_NOT_FOUND",
    ]);
  });

  // Shows: docs/git.md#source-and-builds-over-v1: `GET /v1/project/:id/builds/:buildId/logs` | lines
  it("has a log that is read on from its cursor, and as events", async () => {
    const { metadata } = await project();
    const { build_id } = (await call("POST", `/${metadata.name}/deploy`)).json().data;
    const at = new Date("2026-11-21T12:00:00Z");
    const line = (sequence: number, final = false) => ({
      sequence,
      at,
      level: "info",
      step: "build",
      message: `line ${sequence}`,
      final,
    });
    store.logs.set(build_id, [line(1), line(7)]);
    const url = `/${metadata.name}/builds/${build_id}/logs`;
    const first = (await call("GET", `${url}?limit=1`)).json().data;
    expect(first).toMatchObject({ next_cursor: 1, status: "pending", finished: false });
    const rest = (await call("GET", `${url}?cursor=1`)).json().data;
    expect(rest.logs.map(({ message }: { message: string }) => message)).toEqual(["line 7"]);
    expect(statusAndCode(await call("GET", `${url}?limit=501`))).toEqual([400, "VALIDATION_FAILED"]);

    const key = `${metadata.uid}/${build_id}`;
    const events = harness.app.inject({
      url: `/v1/project${url}`,
      headers: { ...headers, accept: "text/event-stream", "last-event-id": "1" },
    });
    // The stream is open by now, or will receive both together: either way nothing is lost.
    store.logs.set(build_id, [line(1), line(7), line(9, true)]);
    store.builds.set(key, { ...(store.builds.get(key) as never as object), status: "success" } as never);
    const answer = await events;
    expect(answer.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
    expect(answer.body.match(/^id: .*$/gm)).toEqual(["id: 7", "id: 9"]);
    expect(answer.body).toMatch(
      /event: end\ndata: {"status":"success","next_cursor":9,"truncated":false}\n\n$/,
    );
    await eventually("the stream to be closed", () => harness.services.builds.streams.size === 0);
  });
});

describe("a log as events", () => {
  // Shows: docs/git.md#source-and-builds-over-v1: `GET /v1/project/:id/builds/:buildId/logs` | lines
  it("is ended when the client has disconnected", async () => {
    const { metadata } = await project();
    const { build_id } = (await call("POST", `/${metadata.name}/deploy`)).json().data;
    const base = await harness.app.listen({ port: 0, host: "127.0.0.1" });
    const client = new AbortController();
    const { streams } = harness.services.builds;
    const answer = await fetch(`${base}/v1/project/${metadata.name}/builds/${build_id}/logs`, {
      headers: { ...headers, accept: "text/event-stream" },
      signal: client.signal,
    });
    expect([answer.status, streams.size]).toEqual([200, 1]);
    client.abort();
    await eventually("the stream to be closed", () => streams.size === 0);
  });
});

describe("a source", () => {
  const sent = {
    connection_id: "gone",
    repository_id: repositoryIds.shown(source),
    branch: "main",
    auto_deploy: false,
  };

  // Shows: docs/git.md#source-and-builds-over-v1: `GET /v1/project/:id/source` | the projection
  it("is shown with what its connection can do, and nothing of a credential", async () => {
    const { metadata } = await project({ versionDeploy: byTag });
    const answer = await call("GET", `/${metadata.name}/source`);
    expect(answer.json().data).toEqual({
      source: {
        ...sent,
        version_deploy: { enabled: true, event: "tag", tag_pattern: "v*", include_prereleases: false },
        provider_id: "forgejo",
        repository_path: "acme/shop",
      },
      build: expect.objectContaining({ runtime: null, context_path: "." }),
      source_revision: 1,
      capabilities: expect.objectContaining({ nativePreviews: false }),
    });
    expect(answer.body).not.toMatch(/right|hook-secret/);
  });

  it("is shown while its server does not answer, and when there is none", async () => {
    const { GitError } = await import("@slipway/git");
    const { metadata } = await project();
    git.failure = new GitError("ProviderUnavailable", "it does not answer");
    const { data } = (await call("GET", `/${metadata.name}/source`)).json();
    expect(data.source).toMatchObject({ branch: "main", repository_path: null });
    await harness.project(ORGANIZATION, "pplain");
    expect((await call("GET", "/pplain/source")).json().data).toEqual({
      source: null,
      build: null,
      source_revision: 0,
      capabilities: null,
    });
  });

  // Shows: docs/git.md#source-and-builds-over-v1: `PUT /v1/project/:id/source` | the projection. With
  // Shows: docs/git.md#source-and-builds-over-v1: `PATCH /v1/project/:id/build-settings` | the
  // Shows: docs/git.md#source-and-builds-over-v1: 409 `PROJECT_NOT_PUBLISHED` | a source is removed
  // Shows: docs/applications.md#command: a project that is built from Git has none: `build.start_command` is in its
  it("replaces an image and its command, and is built immediately where pushes are published", async () => {
    const { metadata } = await harness.project(ORGANIZATION, "pattach", { command: ["node", "c.js"] });
    const body = {
      source: { ...sent, auto_deploy: true },
      build: { start_command: "node a.js", context_path: " ./web/ " },
    };
    const answer = await call("PUT", "/pattach/source", body);
    expect([answer.statusCode, answer.json().data.source_revision]).toEqual([200, 1]);
    expect(answer.json().data.build).toMatchObject({ start_command: "node a.js", context_path: "web" });
    const ref = { namespace: NAMESPACE, name: metadata.name };
    expect((await harness.kube.get<Project>(projectResource, ref)).spec).not.toHaveProperty("command");
    const built = [...store.builds.values()].filter(({ project_uid }) => project_uid === metadata.uid);
    expect(built).toMatchObject([{ triggered_by: "settings", commit_sha: FAKE_SHA }]);
    // The push of that commit, delivered late, builds nothing again.
    expect(store.triggers.get(`${metadata.uid} push main ${FAKE_SHA}`)).toBe(built[0]?.id);

    const before = store.builds.size;
    const again = await call("PATCH", "/pattach/build-settings", {
      start_command: "node b.js",
      build_command: null,
    });
    expect(again.json().data).toMatchObject({ source_revision: 2, build: { start_command: "node b.js" } });
    expect(store.builds.size).toBe(before);
    expect(statusAndCode(await call("PATCH", "/pattach/build-settings", {}))).toEqual([
      400,
      "VALIDATION_FAILED",
    ]);
    expect(statusAndCode(await call("DELETE", "/pattach/source"))).toEqual([409, "PROJECT_NOT_PUBLISHED"]);
  });

  it("is refused by the field that is wrong", async () => {
    await harness.project(ORGANIZATION, "prefused");
    const put = (change: object, build: object = {}) =>
      call("PUT", "/prefused/source", { source: { ...sent, ...change }, build });
    const fieldsOf = (answer: Awaited<ReturnType<typeof put>>) =>
      answer.json().errors?.map(({ field }: { field: string }) => field);
    expect(fieldsOf(await put({ branch: "nope" }))).toEqual(["source.branch"]);
    expect(fieldsOf(await put({ repository_id: "r1" }))).toEqual(["source.repository_id"]);
    expect(fieldsOf(await put({}, { runtime: "cobol" }))).toEqual(["build.runtime"]);
    expect(fieldsOf(await put({}, { context_path: "../up" }))).toEqual(["build.context_path"]);
    const both = { auto_deploy: true, version_deploy: { enabled: true, event: "tag", tag_pattern: "*" } };
    expect((await put(both)).statusCode).toBe(400);
    expect(
      fieldsOf(await put({ version_deploy: { enabled: true, event: "tag", tag_pattern: "[a]" } })),
    ).toEqual(["source.version_deploy.tag_pattern"]);
    expect(statusAndCode(await put({ connection_id: "gnone" }))).toEqual([409, "GIT_CONNECTION_UNAVAILABLE"]);
  });

  it("may be sent back with the id of its own spec, and with none that was not given out", async () => {
    const { metadata } = await project();
    const put = (repository_id: string) =>
      call("PUT", `/${metadata.name}/source`, { source: { ...sent, repository_id }, build: {} });
    for (const id of [source.repositoryId, sent.repository_id]) {
      expect((await put(id)).json().data).toMatchObject({ source: { repository_id: sent.repository_id } });
      const { spec } = await harness.kube.get<Project>(projectResource, {
        namespace: NAMESPACE,
        name: metadata.name,
      });
      expect(spec.source?.repositoryId).toBe(source.repositoryId);
    }
    expect((await put(sealRepositoryId("gone", "18"))).statusCode).toBe(400);
  });

  // Shows: docs/git.md#source-and-builds-over-v1: `DELETE /v1/project/:id/source` | the projection
  it("that published something leaves its image behind", async () => {
    const { metadata } = await project();
    const ref = { namespace: NAMESPACE, name: metadata.name };
    const image = {
      reference: `registry.local/${ORGANIZATION}/${metadata.name}`,
      digest: `sha256:${"1".repeat(64)}`,
    };
    const status = { build: { imageBuild: "b1", publishedBuild: "b1", image } };
    await harness.kube.patch(projectResource, ref, { status }, { subresource: "status" });
    const answer = await call("DELETE", `/${metadata.name}/source`);
    expect(answer.json().data).toMatchObject({
      source: null,
      build: null,
      capabilities: null,
      source_revision: 2,
    });
    const { spec } = await harness.kube.get<Project>(projectResource, ref);
    expect(spec.image).toMatchObject({ url: image.reference, digest: image.digest, isPublic: false });
    expect(spec.source).toBeUndefined();
    expect((await call("GET", `/${metadata.name}/builds`)).statusCode).toBe(200);
  });

  // Shows: docs/git.md#source-and-builds-over-v1: `GET /v1/project/:id/source/branches` | an array of
  it("lists its branches", async () => {
    const { metadata } = await project();
    expect((await call("GET", `/${metadata.name}/source/branches`)).json().data).toEqual([
      { name: "main", commit_sha: FAKE_SHA },
    ]);
  });
});

describe("a creation from a repository", () => {
  it("has a first build, known by the project", () => {
    expect(firstBuildId("p1")).toMatch(/^b[a-z0-9]{19}$/);
    expect(firstBuildId("p1")).toBe(firstBuildId("p1"));
    expect(firstBuildId("p1")).not.toBe(firstBuildId("p2"));
  });

  it("is refused with its own codes", async () => {
    const create = (config: object) =>
      call("POST", "", exampleBody({ plan: "basic" }, { image: undefined, ...config }));
    const from = (change: object) => ({
      source: {
        connection_id: "gone",
        repository_id: repositoryIds.shown(source),
        branch: "main",
        auto_deploy: false,
        ...change,
      },
      build: {},
    });
    expect(statusAndCode(await create(from({ connection_id: "gnone" })))).toEqual([
      409,
      "GIT_CONNECTION_UNAVAILABLE",
    ]);
    expect(statusAndCode(await create(from({ branch: "nope" })))).toEqual([400, "GIT_REF_NOT_FOUND"]);
    // As a spec has it, sealed without the key: no client received it.
    const created = await create(from({ repository_id: source.repositoryId }));
    expect(statusAndCode(created)).toEqual([400, "GIT_REPOSITORY_NOT_FOUND"]);
    expect((await create({ source: from({}).source })).statusCode).toBe(400);
    expect((await create({ ...from({}), build: { runtime: "cobol" } })).statusCode).toBe(400);
  });
});
