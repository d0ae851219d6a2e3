import { type Build, firstBuildId, organizationNamespace } from "@slipway/crds";
import { signBody } from "@slipway/git";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { exampleBody, exampleJobBody } from "../../../test/kit/api-server/harness.ts";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import { statusAndCode } from "../../../test/kit/api-server/status-and-code.ts";
import { type GithubServer, startGithub } from "../../../test/kit/git/github-server.ts";
import { buildResource } from "../resources.ts";
import { findConnection } from "./cluster.ts";
import { connectGithub } from "./connect.ts";
import { readCredential } from "./credentials.ts";
import { gitServers } from "./servers.ts";

/** Projects of the legacy kind over a real kube-apiserver and ledger, against what GitHub documents. */

const HOOKS = "https://slipway.example";
const [MAIN, NEXT, TAGGED] = ["a", "b", "c"].map((letter) => letter.repeat(40)) as [string, string, string];
let harness: RealHarness;
let github: GithubServer;
let organizationId: string;
let owner: Record<string, string>;
let connectionId: string;

beforeAll(async () => {
  github = await startGithub();
  const git = gitServers({ allowedHosts: [github.host], ca: github.ca, githubApp: () => github.app });
  harness = await startRealHarness({ git, builds: { hookBase: HOOKS } });
  ({ id: organizationId } = await harness.organization());
  owner = await harness.owner(organizationId);
  connectionId = (await connectGithub("5", organizationId, harness.services)).metadata.name;
});
afterAll(async () => {
  await harness?.close();
  await github?.close();
});
beforeEach(() => {
  github.state = "installed";
  const branches = { main: MAIN, next: NEXT };
  const hooks = github.repositories[0]?.hooks ?? new Map();
  github.repositories = [
    { id: 7, full_name: "octocat/Hello-World", branches, tags: { "v1.0.0": TAGGED }, hooks },
  ];
});

const repository = {
  repository_owner: "octocat",
  repository_name: "hello-world",
  branch: "main",
  auto_deploy: false,
  runtime: "dockerfile",
};
const call = (method: "GET" | "POST" | "PATCH" | "DELETE", path: string, payload?: object) =>
  harness.app.inject({ method, url: `/v1${path}`, headers: owner, ...(payload ? { payload } : {}) });
const createJob = (change: object = {}) =>
  call("POST", "/project", exampleJobBody({}, { image: undefined, github: { ...repository, ...change } }));
const created = async (
  answer: ReturnType<typeof call>,
): Promise<{ project_id: string; build_id: string }> => {
  const { statusCode, body } = await answer;
  expect(statusCode, body).toBe(201);
  return JSON.parse(body).data;
};
const buildOf = (name: string) =>
  harness.admin.get<Build>(buildResource, { namespace: organizationNamespace(organizationId), name });
const builds = async (project: string) =>
  (
    await harness.admin.listAll<Build>(buildResource, { namespace: organizationNamespace(organizationId) })
  ).filter(({ spec }) => spec.projectRef.name === project);

describe("an account of GitHub", () => {
  it("is a connection of the organization, with nothing secret of the App", async () => {
    const { connections } = (await call("GET", "/git/connections")).json().data;
    expect(connections).toMatchObject([
      {
        id: connectionId,
        provider_id: "github",
        display_name: "octocat",
        status: "active",
        connection_revision: 1,
      },
    ]);
    const again = await connectGithub("5", organizationId, harness.services);
    expect(again.metadata.name).toBe(connectionId);
    const { providers } = (await call("GET", "/git/providers")).json().data;
    expect(providers.find(({ id }: { id: string }) => id === "github")).toMatchObject({ available: true });
    expect(
      statusAndCode(await call("PATCH", `/git/connections/${connectionId}/credentials`, { token: "x" })),
    ).toEqual([409, "GIT_CAPABILITY_UNAVAILABLE"]);
    const found = await call("POST", `/git/connections/${connectionId}/repositories/resolve`, {
      path: "octocat/Hello-World",
    });
    expect(found.json().data).toMatchObject({ path: "octocat/Hello-World", private: true });
  });

  // Shows: docs/git.md#source-and-builds-over-v1: `POST /v1/project` with `github` | the same for the
  // Shows: docs/git.md#source-and-builds-over-v1: `POST /v1/project/:id/github/deploy` | as `deploy`
  // Shows: docs/jobs.md#creation: from a Git repository, of an account of GitHub that is connected with
  it("gives access to jobs and applications, and each is built once at its creation", async () => {
    const job = await created(createJob());
    expect(job.build_id).toBe(firstBuildId(job.project_id));
    const [build, ...others] = await builds(job.project_id);
    expect(others).toEqual([]);
    expect(build?.spec).toMatchObject({
      triggeredBy: "creation",
      branch: "main",
      commitSha: MAIN,
      github: { repositoryOwner: "octocat", repositoryName: "hello-world" },
    });
    const http = exampleBody({ plan: "basic" }, { image: undefined, github: repository });
    const application = await created(call("POST", "/project", http));
    const deployed = await call("POST", `/project/${application.project_id}/github/deploy`, {
      branch: "next",
    });
    expect(deployed.statusCode, deployed.body).toBe(202);
    expect((await buildOf(deployed.json().data.build_id)).spec).toMatchObject({
      commitSha: NEXT,
      branch: "next",
    });
    const list = (await call("GET", `/project/${application.project_id}/github/builds`)).json();
    expect(list).toMatchObject({ pagination: { total: 2, page: 1, limit: 10 } });
  });

  // Shows: docs/git.md#source-and-builds-over-v1: 409 `GIT_SOURCE_CREATION_UNAVAILABLE` | `source` names
  it("is none for source, and source goes with nothing else", async () => {
    const found = await call("POST", `/git/connections/${connectionId}/repositories/resolve`, {
      path: "octocat/Hello-World",
    });
    const repository_id = found.json().data.id;
    const source = { connection_id: connectionId, repository_id, branch: "main", auto_deploy: false };
    const create = (config: object) =>
      call("POST", "/project", exampleBody({ plan: "basic" }, { image: undefined, build: {}, ...config }));
    expect(statusAndCode(await create({ source }))).toEqual([409, "GIT_SOURCE_CREATION_UNAVAILABLE"]);
    expect(statusAndCode(await create({ source, github: repository }))).toEqual([400, "VALIDATION_FAILED"]);
  });

  it("resolves the commit, and the invalid field is named", async () => {
    const fieldOf = async (change: object) => {
      const answer = await createJob(change);
      return [answer.statusCode, answer.json().errors?.[0]?.field];
    };
    expect(await fieldOf({ branch: "gone" })).toEqual([400, "config.github.branch"]);
    expect(await fieldOf({ repository_name: "gone" })).toEqual([400, "config.github.repository_name"]);
    expect(await fieldOf({ runtime: "cobol" })).toEqual([400, "config.github.runtime"]);
    expect(await fieldOf({ context_path: "../up" })).toEqual([400, "config.github.context_path"]);
    github.state = "suspended";
    expect(statusAndCode(await createJob())).toEqual([409, "GIT_CONNECTION_UNAVAILABLE"]);
  });
});

describe("commands and deploy settings", () => {
  // Shows: docs/git.md#source-and-builds-over-v1: `PATCH /v1/project/:id/github/commands` | 202 and
  // Shows: docs/git.md#source-and-builds-over-v1: `PATCH /v1/project/:id/github/deploy-settings`
  // Shows: docs/git.md#source-and-builds-over-v1: 400 `GITHUB_REPOSITORY_NOT_CONNECTED` | settings of a
  it("are changed while the repository is connected, and 400 otherwise", async () => {
    const { project_id: id } = await created(createJob());
    const commands = await call("PATCH", `/project/${id}/github/commands`, {
      build_command: "make",
      context_path: "./web/",
    });
    expect(commands.statusCode, commands.body).toBe(202);
    const { spec } = await buildOf(commands.json().data.build_id);
    expect(spec).toMatchObject({
      triggeredBy: "settings",
      github: { buildCommand: "make", contextPath: "web" },
    });

    github.state = "removed";
    const refused = [400, "GITHUB_REPOSITORY_NOT_CONNECTED"];
    expect(
      statusAndCode(await call("PATCH", `/project/${id}/github/commands`, { build_command: null })),
    ).toEqual(refused);
    const settings = (body: object) => call("PATCH", `/project/${id}/github/deploy-settings`, body);
    expect(statusAndCode(await settings({ auto_deploy: true }))).toEqual(refused);
    // A manual deploy needs no approval.
    expect((await settings({ auto_deploy: false })).statusCode).toBe(200);
  });

  it("make a hook, by whose deliveries the project is built", async () => {
    const { project_id: id } = await created(createJob());
    const settings = await call("PATCH", `/project/${id}/github/deploy-settings`, { auto_deploy: true });
    expect(settings.json().data).toMatchObject({ repository_name: "hello-world", auto_deploy: true });
    const connection = await findConnection(harness.admin, organizationId, connectionId);
    const url = `${HOOKS}/v1/git/hooks/${connectionId}`;
    expect(connection.status?.hooks).toEqual([{ repositoryId: "7", url, path: "octocat/hello-world" }]);
    expect(connection.metadata.finalizers).toEqual(["slipway.dev/gitconnection"]);
    const { hookSecret } = await readCredential(harness.admin, connection);
    expect([...(github.repositories[0]?.hooks.values() ?? [])]).toEqual([{ url, secret: hookSecret }]);

    const deliver = (branch: string, delivery: string) => {
      const full_name = "octocat/Hello-World";
      const payload = JSON.stringify({
        ref: `refs/heads/${branch}`,
        after: NEXT,
        repository: { id: 7, full_name },
      });
      return harness.app.inject({
        method: "POST",
        url: `/v1/git/hooks/${connectionId}`,
        headers: {
          "content-type": "application/json",
          "x-github-event": "push",
          "x-github-delivery": delivery,
          "x-hub-signature-256": `sha256=${signBody(hookSecret, Buffer.from(payload))}`,
        },
        payload,
      });
    };
    const main = github.repositories[0]?.branches ?? {};
    main.main = NEXT;
    for (const [branch, delivery] of [
      ["other", "d-0000001"],
      ["main", "d-0000002"],
      ["main", "d-0000003"],
    ] as const) {
      expect((await deliver(branch, delivery)).statusCode).toBe(202);
    }
    // They are worked off in the background: what a delivery started is there before it is known.
    const known = () =>
      harness.ledger
        .selectFrom("git_deliveries")
        .select("delivery_id")
        .where("delivery_id", "in", ["d-0000001", "d-0000002", "d-0000003"])
        .execute();
    await expect.poll(async () => (await known()).length).toBe(3);
    const pushed = (await builds(id)).filter(({ spec }) => spec.triggeredBy === "push");
    expect(pushed.map(({ spec }) => [spec.branch, spec.commitSha])).toEqual([["main", NEXT]]);
  });

  it("publish the latest tag by hand, where tags are published", async () => {
    const version_deploy = { enabled: true, event: "tag", tag_pattern: "v*" };
    const { project_id: id } = await created(createJob({ version_deploy }));
    const deployed = await call("POST", `/project/${id}/github/deploy`);
    expect((await buildOf(deployed.json().data.build_id)).spec).toMatchObject({
      tag: "v1.0.0",
      commitSha: TAGGED,
    });
    const named = await call("POST", `/project/${id}/github/deploy`, { branch: "main" });
    expect(statusAndCode(named)).toEqual([400, "GIT_VERSION_REF_OVERRIDE"]);
  });
});

it("goes with its hooks when it is revoked, and its projects are built no more", async () => {
  const { project_id: id } = await created(createJob({ auto_deploy: true }));
  expect(github.repositories[0]?.hooks.size).toBe(1);
  for (const { metadata } of await harness.admin.listAll<Build>(buildResource, {
    namespace: organizationNamespace(organizationId),
  })) {
    await harness.admin.patch(
      buildResource,
      { namespace: metadata.namespace, name: metadata.name },
      {
        status: { phase: "superseded" },
      },
      { subresource: "status" },
    );
  }
  const revoked = await call("DELETE", `/git/connections/${connectionId}`);
  expect(revoked.json().data, revoked.body).toMatchObject({
    cleanup_pending: false,
    connection: { status: "revoked" },
  });
  expect(github.repositories[0]?.hooks.size).toBe(0);
  expect(statusAndCode(await call("POST", `/project/${id}/github/deploy`))).toEqual([
    409,
    "GIT_CONNECTION_UNAVAILABLE",
  ]);
});
