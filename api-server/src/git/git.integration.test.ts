import { resources } from "@slipway/controller-runtime";
import { type Build, organizationNamespace } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import { startGitea, type TestGitea } from "../../../test/kit/servers/gitea.ts";
import { buildResource } from "../resources.ts";
import { findConnection } from "./cluster.ts";
import { ensureHook } from "./hooks.ts";
import { gitServers } from "./servers.ts";

/** Git connections over a real kube-apiserver with the API server's own roles, to a real Gitea. */

const PATH = "slipway/sample-node";
const HOOKS = "http://127.0.0.1:9";
let harness: RealHarness;
let gitea: TestGitea;
let organizationId: string;
let owner: Record<string, string>;

beforeAll(async () => {
  gitea = await startGitea();
  const git = gitServers({ allowedHosts: [gitea.host], ca: gitea.ca });
  harness = await startRealHarness({ git });
  ({ id: organizationId } = await harness.organization());
  owner = await harness.owner(organizationId);
});
afterAll(async () => {
  await harness?.close();
  await gitea?.stop();
});

const call = (method: "GET" | "POST" | "PATCH" | "DELETE", path: string, payload?: object) =>
  harness.app.inject({ method, url: `/v1/git${path}`, headers: owner, ...(payload ? { payload } : {}) });
const connect = (change: object = {}) =>
  call("POST", "/connections", {
    provider_id: "forgejo",
    instance_url: `${gitea.url}/`,
    display_name: "The stack's own",
    repository_path: PATH,
    username: gitea.username,
    token: gitea.token,
    ...change,
  });
async function connected(): Promise<string> {
  const answer = await connect();
  expect(answer.statusCode, answer.body).toBe(201);
  return answer.json().data.connection.id;
}
const resourceOf = (id: string) => findConnection(harness.admin, organizationId, id);
const namespace = () => organizationNamespace(organizationId);
const secrets = async (id: string) =>
  (await harness.admin.listAll(resources.secrets, { namespace: namespace() })).filter(({ metadata }) =>
    metadata?.name?.startsWith(id),
  );
const hooksThere = async () => (await gitea.call("GET", `/repos/${PATH}/hooks`)).body as unknown[];
const hooked = async (id: string) => {
  const { body } = await gitea.call("GET", `/repos/${PATH}`);
  return ensureHook(
    await resourceOf(id),
    { id: String((body as { id: number }).id) },
    HOOKS,
    harness.services,
  );
};

describe("connecting", () => {
  // Shows: docs/git.md#over-v1: `GET /v1/git/connections` | `connections`, the oldest first
  // Shows: docs/git.md#over-v1: `POST /v1/git/connections` | 201 and `connection`, after the server has
  it("keeps the credential in a Secret that goes with the connection, and shows it nowhere", async () => {
    const answer = await connect();
    expect(answer.statusCode, answer.body).toBe(201);
    const { connection } = answer.json().data;
    expect(connection).toEqual({
      id: expect.stringMatching(/^g[a-z0-9]{19}$/),
      provider_id: "forgejo",
      instance_url: gitea.url,
      display_name: "The stack's own",
      status: "active",
      connection_revision: 1,
      capabilities: {
        repositoryDiscovery: true,
        pushDeploy: true,
        nativePreviews: false,
        versionDeploy: true,
      },
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    const [secret, ...others] = await secrets(connection.id);
    expect(others).toEqual([]);
    expect(secret).toMatchObject({
      immutable: true,
      metadata: { ownerReferences: [{ name: connection.id }] },
    });
    const resource = await resourceOf(connection.id);
    expect(resource.spec.credentialRef.name).toBe(secret?.metadata?.name);
    const list = await call("GET", "/connections");
    expect(list.json().data.connections).toEqual([connection]);
    expect(harness.audited.at(-1)).toMatchObject({ operation: "createGitConnection", status: 201 });
    const everywhere = [
      answer.body,
      list.body,
      JSON.stringify(resource),
      harness.logged(),
      JSON.stringify(harness.audited),
    ];
    expect(everywhere.join("\n")).not.toContain(gitea.token);
    expect(everywhere.join("\n")).not.toContain(Buffer.from(gitea.token).toString("base64"));
  });

  // Shows: docs/git.md#over-v1: 400 `GIT_ADDRESS_REFUSED` | one of the host's addresses is not public
  it.each([
    ["a wrong token", { token: "0".repeat(40) }, "token", "GIT_CREDENTIAL_REFUSED"],
    ["somebody else's name", { username: "slipway-admin" }, "token", "GIT_CREDENTIAL_REFUSED"],
    [
      "a repository that is not there",
      { repository_path: "slipway/none" },
      "repository_path",
      "GIT_REPOSITORY_NOT_FOUND",
    ],
    [
      "an address of the machine",
      { instance_url: "https://127.0.0.1:1" },
      "instance_url",
      "GIT_ADDRESS_REFUSED",
    ],
    [
      "a name of the machine",
      { instance_url: "https://localhost:6443" },
      "instance_url",
      "GIT_ADDRESS_REFUSED",
    ],
    [
      "the metadata address",
      { instance_url: "https://169.254.169.254" },
      "instance_url",
      "GIT_ADDRESS_REFUSED",
    ],
    ["the apiserver's address", { instance_url: "https://10.96.0.1" }, "instance_url", "GIT_ADDRESS_REFUSED"],
  ])("with %s is refused, and nothing is kept", async (_, change, field, code) => {
    const before = (await call("GET", "/connections")).json().data.connections.length;
    const answer = await connect(change);
    expect(answer.statusCode).toBe(400);
    expect(answer.json()).toMatchObject({ code, errors: [{ field }] });
    expect((await call("GET", "/connections")).json().data.connections.length).toBe(before);
  });

  // Shows: docs/git.md#over-v1: 400 `GIT_CERTIFICATE_UNTRUSTED` | the server's certificate is of no
  it("to a server whose certificate is not trusted is refused", async () => {
    const strict = gitServers({ allowedHosts: [gitea.host] });
    const { token, username, url: instanceUrl } = gitea;
    const account = { providerId: "forgejo", instanceUrl, username, token };
    await expect(strict.open(account).check()).rejects.toMatchObject({ code: "CertificateUntrusted" });
    await strict.close();
  });

  // Shows: docs/git.md#over-v1: 403 `OWNER_SESSION_REQUIRED` | operations that change a credential
  it("is for owners alone", async () => {
    const headers = harness.key(organizationId, "* on organization:*", "* on project:*");
    const answer = await harness.app.inject({
      method: "POST",
      url: "/v1/git/connections",
      headers,
      payload: {},
    });
    expect([answer.statusCode, answer.json().code]).toEqual([403, "OWNER_SESSION_REQUIRED"]);
  });
});

describe("a connection", () => {
  // Shows: docs/git.md#over-v1: `POST /v1/git/connections/:connectionId/repositories/resolve`
  // Shows: docs/git.md#over-v1: `GET /v1/git/connections/:connectionId/repositories` | `repositories`
  // Shows: docs/git.md#over-v1: `GET /v1/git/connections/:connectionId/repositories/:repositoryId/branches`
  it("resolves, lists and shows what the credential sees", async () => {
    const id = await connected();
    const resolved = await call("POST", `/connections/${id}/repositories/resolve`, { path: PATH });
    const repository = resolved.json().data;
    expect(repository).toMatchObject({
      path: PATH,
      default_branch: "main",
      private: true,
      web_url: `${gitea.url}/${PATH}`,
    });
    const listed = (await call("GET", `/connections/${id}/repositories`)).json().data;
    expect(listed).toEqual({ repositories: [repository], next_cursor: null });
    const branches = await call(
      "GET",
      `/connections/${id}/repositories/${encodeURIComponent(repository.id)}/branches`,
    );
    expect(branches.json().data).toEqual([
      { name: "main", commit_sha: expect.stringMatching(/^[0-9a-f]{40}$/) },
    ]);
  });

  // Shows: docs/git.md#over-v1: `PATCH /v1/git/connections/:connectionId/credentials` | `connection`
  it("stores another credential once that was checked, and keeps the old one when it fails", async () => {
    const id = await connected();
    const [old] = await secrets(id);
    const refused = await call("PATCH", `/connections/${id}/credentials`, { token: "0".repeat(40) });
    expect([refused.statusCode, refused.json().code]).toEqual([400, "GIT_CREDENTIAL_REFUSED"]);
    expect((await secrets(id)).map(({ metadata }) => metadata?.uid)).toEqual([old?.metadata?.uid]);
    const token = await gitea.limitedToken("write:repository");
    const replaced = await call("PATCH", `/connections/${id}/credentials`, { token });
    expect(replaced.json().data.connection).toMatchObject({
      id,
      connection_revision: 2,
      capabilities: { repositoryDiscovery: false, pushDeploy: true },
    });
    const [fresh, ...others] = await secrets(id);
    expect(others).toEqual([]);
    expect(fresh?.metadata?.name).not.toBe(old?.metadata?.name);
    const answer = await call("GET", `/connections/${id}/repositories`);
    expect([answer.statusCode, answer.json().code]).toEqual([409, "GIT_CAPABILITY_UNAVAILABLE"]);
  });

  // Shows: docs/git.md#over-v1: 409 `GIT_CONNECTION_UNAVAILABLE` | it is revoked, its Secret does not
  it("whose Secret is deleted is not available", async () => {
    const id = await connected();
    const [secret] = await secrets(id);
    await harness.admin.delete(resources.secrets, {
      namespace: namespace(),
      name: secret?.metadata?.name ?? "",
    });
    const answer = await call("POST", `/connections/${id}/repositories/resolve`, { path: PATH });
    expect([answer.statusCode, answer.json().code]).toEqual([409, "GIT_CONNECTION_UNAVAILABLE"]);
  });
});

describe("revoking", () => {
  // Shows: docs/git.md#over-v1: `DELETE /v1/git/connections/:connectionId` | `connection`, revoked, and
  it("removes hooks, credential and connection", async () => {
    const id = await connected();
    await hooked(id);
    expect(await hooksThere()).toHaveLength(1);
    const answer = await call("DELETE", `/connections/${id}`);
    expect(answer.json()).toMatchObject({
      status: "success",
      data: { connection: { id, status: "revoked", connection_revision: 2 }, cleanup_pending: false },
    });
    expect(await hooksThere()).toEqual([]);
    expect(await secrets(id)).toEqual([]);
    expect((await call("DELETE", `/connections/${id}`)).statusCode).toBe(404);
  });

  // Shows: docs/git.md#over-v1: 409 `GIT_CONNECTION_OPERATION_PENDING` | a build uses it, so it is not
  it("is refused while a build uses the connection, which stays active", async () => {
    const id = await connected();
    const build = await harness.admin.create<Build>(buildResource, {
      apiVersion: "slipway.dev/v1alpha1",
      kind: "Build",
      metadata: { name: `build-of-${id}`, namespace: namespace() },
      spec: {
        projectRef: { name: "p1" },
        triggeredBy: "manual",
        branch: "main",
        source: { connectionId: id, repositoryId: "r", branch: "main", autoDeploy: false },
      },
    });
    const answer = await call("DELETE", `/connections/${id}`);
    expect([answer.statusCode, answer.json().code]).toEqual([409, "GIT_CONNECTION_OPERATION_PENDING"]);
    expect((await resourceOf(id)).spec.revokedAt).toBeUndefined();
    const status = { phase: "failed" };
    const { name } = build.metadata;
    await harness.admin.patch(
      buildResource,
      { namespace: namespace(), name },
      { status },
      { subresource: "status" },
    );
    expect((await call("DELETE", `/connections/${id}`)).statusCode).toBe(200);
  });

  // Shows: docs/git.md#over-v1: `DELETE /v1/git/connections/:connectionId` | `connection`, revoked, and
  it("reports hooks that are left, uses the credential for nothing else, and is finished by revoking again", async () => {
    const id = await connected();
    await hooked(id);
    // The server no longer accepts the token, so the hook cannot be removed.
    const [secret] = await secrets(id);
    const secretRef = { namespace: namespace(), name: secret?.metadata?.name ?? "" };
    await harness.admin.delete(resources.secrets, secretRef);
    const bad = { username: gitea.username, token: "0".repeat(40), hookSecret: "x" };
    const written = { metadata: secretRef, stringData: bad };
    await harness.admin.create(resources.secrets, written as never);
    const first = (await call("DELETE", `/connections/${id}`)).json().data;
    expect(first).toMatchObject({ cleanup_pending: true, connection: { id, status: "revoked" } });
    const listed = (await call("GET", "/connections")).json().data.connections;
    expect(listed.find((one: { id: string }) => one.id === id)).toMatchObject({ status: "revoked" });
    for (const [method, path, body] of [
      ["POST", "repositories/resolve", { path: PATH }],
      ["PATCH", "credentials", { token: gitea.token }],
    ] as const) {
      const answer = await call(method, `/connections/${id}/${path}`, body);
      expect([answer.statusCode, answer.json().code]).toEqual([409, "GIT_CONNECTION_UNAVAILABLE"]);
    }
    await harness.admin.delete(resources.secrets, secretRef);
    await harness.admin.create(resources.secrets, {
      ...written,
      stringData: { ...bad, token: gitea.token },
    } as never);
    expect((await call("DELETE", `/connections/${id}`)).json().data).toMatchObject({
      cleanup_pending: false,
    });
    expect(await hooksThere()).toEqual([]);
  });
});
