import { type Build, firstBuildId, organizationNamespace } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exampleBody } from "../../../test/kit/api-server/harness.ts";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import { startGitea, type TestGitea } from "../../../test/kit/servers/gitea.ts";
import { gitServers } from "../git/servers.ts";
import { buildResource } from "../resources.ts";

/** Projects from Git over a real kube-apiserver with the API server's own roles, a real ledger and a real Gitea. */

const PATH = "slipway/sample-node";
let harness: RealHarness;
let gitea: TestGitea;
let organizationId: string;
let owner: Record<string, string>;
let source: Record<string, unknown>;

beforeAll(async () => {
  gitea = await startGitea();
  harness = await startRealHarness({ git: gitServers({ allowedHosts: [gitea.host], ca: gitea.ca }) });
  ({ id: organizationId } = await harness.organization());
  owner = await harness.owner(organizationId);
  const connected = await call("POST", "/git/connections", {
    provider_id: "forgejo",
    instance_url: gitea.url,
    display_name: "The stack's own",
    repository_path: PATH,
    username: gitea.username,
    token: gitea.token,
  });
  const connection_id = connected.json().data.connection.id;
  const found = await call("POST", `/git/connections/${connection_id}/repositories/resolve`, { path: PATH });
  const { id: repository_id, default_branch: branch } = found.json().data;
  source = { connection_id, repository_id, branch, auto_deploy: true };
});
afterAll(async () => {
  await harness?.close();
  await gitea?.stop();
});

const call = (method: "GET" | "POST" | "PUT" | "DELETE", path: string, payload?: object, key?: string) =>
  harness.app.inject({
    method,
    url: `/v1${path}`,
    headers: { ...owner, ...(key === undefined ? {} : { "idempotency-key": key }) },
    ...(payload ? { payload } : {}),
  });
const builds = () =>
  harness.admin.listAll<Build>(buildResource, { namespace: organizationNamespace(organizationId) });

describe("a project from a repository", () => {
  // Shows: docs/git.md#source-and-builds-over-v1: `POST /v1/project` with `source` and `build`
  it("is created with its first build, once per key, and deployed again", async () => {
    const body = exampleBody(
      { plan: "basic" },
      { image: undefined, source, build: { runtime: "dockerfile" } },
    );
    const key = "create-from-git-0001";
    const answer = await call("POST", "/project", body, key);
    expect(answer.statusCode, answer.body).toBe(201);
    const { project_id, build_id } = answer.json().data;
    expect(build_id).toBe(firstBuildId(project_id));
    const again = await call("POST", "/project", body, key);
    expect(again.json().data).toMatchObject({ project_id, build_id });

    const [first, ...others] = await builds();
    expect(others).toEqual([]);
    expect(first?.spec).toMatchObject({ triggeredBy: "creation", branch: source.branch, sourceRevision: 1 });
    expect(first?.spec.commitSha).toMatch(/^[0-9a-f]{40}$/);
    const listed = (await call("GET", `/project/${project_id}/builds`)).json();
    expect(listed).toMatchObject({
      data: [
        { id: build_id, status: "pending", commit_sha: first?.spec.commitSha, triggered_by: "creation" },
      ],
      pagination: { total: 1, page: 1, limit: 10 },
    });

    const deployed = await call("POST", `/project/${project_id}/deploy`);
    expect(deployed.statusCode, deployed.body).toBe(202);
    expect(await builds()).toHaveLength(2);
    const log = await call("GET", `/project/${project_id}/builds/${deployed.json().data.build_id}/logs`);
    expect(log.json().data).toEqual({
      logs: [],
      next_cursor: 0,
      status: "pending",
      finished: false,
      truncated: false,
    });
    const shown = (await call("GET", `/project/${project_id}/source`)).json().data;
    expect(shown).toMatchObject({ source: { ...source, repository_path: PATH }, source_revision: 1 });
  });

  it("that is refused leaves neither project nor build", async () => {
    const before = (await builds()).length;
    const body = exampleBody(
      { name: "never-there", plan: "basic" },
      { image: undefined, source: { ...source, branch: "no-such-branch" }, build: {} },
    );
    const answer = await call("POST", "/project", body, "create-from-git-0002");
    expect([answer.statusCode, answer.json().code]).toEqual([400, "GIT_REF_NOT_FOUND"]);
    expect(await builds()).toHaveLength(before);
    const { projects } = (await call("GET", "/project?search=never-there")).json().data;
    expect(projects).toEqual([]);
  });

  it("replaces an image, and is changed with a revision of its own", async () => {
    const image = await call("POST", "/project", exampleBody({ name: "from-image", plan: "basic" }));
    const { project_id } = image.json().data;
    const put = (change: object) =>
      call("PUT", `/project/${project_id}/source`, {
        source: { ...source, auto_deploy: false, ...change },
        build: {},
      });
    expect((await put({})).json().data).toMatchObject({ source_revision: 1, build: { runtime: null } });
    const version_deploy = { enabled: true, event: "tag", tag_pattern: "v*" };
    const changed = await put({ version_deploy });
    expect(changed.json().data).toMatchObject({ source_revision: 2, source: { version_deploy } });
    const none = await call("POST", `/project/${project_id}/deploy`);
    expect([none.statusCode, none.json().code]).toEqual([409, "GIT_VERSION_NOT_FOUND"]);
  });
});
