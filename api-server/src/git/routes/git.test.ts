import { GitError, sealRepositoryId } from "@slipway/git";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { FAKE_SHA, type FakeGit, fakeGit, putConnection } from "../../../../test/kit/api-server/git.ts";
import {
  type FakeHarness,
  repositoryIds,
  startFakeHarness,
} from "../../../../test/kit/api-server/harness.ts";
import { statusAndCode } from "../../../../test/kit/api-server/status-and-code.ts";
import { gitConnectionResource } from "../../resources.ts";

/** What the operations make of a server's answers. The real server and the real cluster are in git.integration.test.ts. */

const ORGANIZATION = "git";
let harness: FakeHarness;
let git: FakeGit;
let owner: Record<string, string>;
beforeAll(async () => {
  git = fakeGit();
  harness = await startFakeHarness({ git });
  await harness.namespace(ORGANIZATION);
  owner = await harness.owner(ORGANIZATION);
  await putConnection(harness.kube, ORGANIZATION, "gread");
  await putConnection(harness.kube, "elsewhere", "gforeign");
});
afterAll(() => harness.close());
afterEach(() => {
  git.failure = undefined;
});

const body = {
  provider_id: "forgejo",
  instance_url: "https://git.example.com",
  display_name: "Company Git",
  repository_path: "acme/shop",
  username: "slipway",
  token: "right",
};
const call = (method: "GET" | "POST" | "PATCH" | "DELETE", path: string, payload?: object) =>
  harness.app.inject({ method, url: `/v1/git${path}`, headers: owner, ...(payload ? { payload } : {}) });
const connect = (change: object = {}) => call("POST", "/connections", { ...body, ...change });
type Answer = Awaited<ReturnType<typeof call>>;
const fieldsOf = (answer: Answer) => answer.json().errors?.map(({ field }: { field: string }) => field);

describe("a connection is refused", () => {
  it.each([
    ["of a provider that cannot be connected", { provider_id: "gitlab" }, "provider_id", "VALIDATION_FAILED"],
    ["without HTTPS", { instance_url: "http://git.example.com" }, "instance_url", "GIT_INSTANCE_URL_INVALID"],
    [
      "with a credential in its address",
      { instance_url: "https://a:b@git.example.com" },
      "instance_url",
      "GIT_INSTANCE_URL_INVALID",
    ],
    ["with a path that is none", { repository_path: "../admin" }, "repository_path", "VALIDATION_FAILED"],
    ["with a line break in its token", { token: "a\nb" }, "token", "VALIDATION_FAILED"],
    ["with a colon in its user", { username: "a:b" }, "username", "VALIDATION_FAILED"],
    ["when the server does not take the token", { token: "wrong" }, "token", "GIT_CREDENTIAL_REFUSED"],
    [
      "when there is no such repository",
      { repository_path: "acme/none" },
      "repository_path",
      "GIT_REPOSITORY_NOT_FOUND",
    ],
  ])("%s", async (_, change, field, code) => {
    const answer = await connect(change);
    expect(statusAndCode(answer)).toEqual([400, code]);
    expect(fieldsOf(answer)).toEqual([field]);
  });

  // Shows: docs/git.md#over-v1: 400 `GIT_PERMISSION_LACKING` | the server accepts the token, but not for
  it.each([
    ["AddressRefused", 400, "GIT_ADDRESS_REFUSED"],
    ["CertificateUntrusted", 400, "GIT_CERTIFICATE_UNTRUSTED"],
    ["PermissionLacking", 400, "GIT_PERMISSION_LACKING"],
    ["ProviderUnavailable", 503, "GIT_PROVIDER_UNAVAILABLE"],
  ] as const)("when the server reports %s: %i %s", async (failure, status, code) => {
    git.failure = new GitError(failure, "as the server says");
    expect(statusAndCode(await connect())).toEqual([status, code]);
  });

  it("where the organization's namespace is not ready", async () => {
    const headers = await harness.owner("unready");
    const answer = await harness.app.inject({
      method: "POST",
      url: "/v1/git/connections",
      headers,
      payload: body,
    });
    expect(statusAndCode(answer)).toEqual([503, "ORGANIZATION_RUNTIME_UNAVAILABLE"]);
  });

  // Shows: docs/git.md#over-v1: 409 `GIT_CONNECTION_LIMIT_REACHED` | the organization has 50
  it("when the organization has as many as it may", async () => {
    const headers = await harness.owner("full");
    await harness.namespace("full");
    for (let index = 0; index < 50; index += 1) {
      await putConnection(harness.kube, "full", `g${index}`);
    }
    const answer = await harness.app.inject({
      method: "POST",
      url: "/v1/git/connections",
      headers,
      payload: body,
    });
    expect(statusAndCode(answer)).toEqual([409, "GIT_CONNECTION_LIMIT_REACHED"]);
    expect(answer.json().limit).toBe(50);
  });

  it("and leaves nothing behind", async () => {
    await connect({ token: "wrong" });
    const { connections } = (await call("GET", "/connections")).json().data;
    expect(connections.map(({ id }: { id: string }) => id)).toEqual(["gread"]);
  });
});

describe("a connection that there is", () => {
  const resolve = (path = "acme/shop", id = "gread") =>
    call("POST", `/connections/${id}/repositories/resolve`, { path });

  it("finds, lists and shows repositories under ids of its own", async () => {
    const found = (await resolve()).json().data;
    expect(found).toEqual({
      id: repositoryIds.seal("gread", "17"),
      path: "acme/shop",
      default_branch: "main",
      private: true,
      web_url: "https://git.example.com/acme/shop",
    });
    expect((await call("GET", "/connections/gread/repositories")).json().data).toEqual({
      repositories: [found],
      next_cursor: null,
    });
    const branches = await call("GET", `/connections/gread/repositories/${found.id}/branches`);
    expect(branches.json().data).toEqual([{ name: "main", commit_sha: FAKE_SHA }]);
  });

  // Shows: docs/git.md#over-v1: 404 `GIT_REPOSITORY_NOT_FOUND` (400 where the request has the path)
  it("does not know an id of another connection, or one that was sealed without the key", async () => {
    for (const id of [repositoryIds.seal("gforeign", "17"), sealRepositoryId("gread", "17")]) {
      const answer = await call("GET", `/connections/gread/repositories/${id}/branches`);
      expect(statusAndCode(answer)).toEqual([404, "GIT_REPOSITORY_NOT_FOUND"]);
    }
    expect(statusAndCode(await resolve("acme/none"))).toEqual([404, "GIT_REPOSITORY_NOT_FOUND"]);
  });

  // Shows: docs/git.md#over-v1: 404 `GIT_CONNECTION_NOT_FOUND` | no connection has this id, or it is
  it("of another organization is not there", async () => {
    for (const id of ["gforeign", "gmissing", "G", "a%00b", "x".repeat(150)]) {
      expect(statusAndCode(await resolve("acme/shop", id))).toEqual([404, "GIT_CONNECTION_NOT_FOUND"]);
      expect(statusAndCode(await call("DELETE", `/connections/${id}`))).toEqual([
        404,
        "GIT_CONNECTION_NOT_FOUND",
      ]);
    }
  });

  it.each([
    ["CredentialRefused", 409, "GIT_CONNECTION_UNAVAILABLE"],
    ["PermissionLacking", 409, "GIT_CONNECTION_UNAVAILABLE"],
    ["AddressRefused", 409, "GIT_CONNECTION_UNAVAILABLE"],
    ["CapabilityUnavailable", 409, "GIT_CAPABILITY_UNAVAILABLE"],
    ["CursorInvalid", 400, "GIT_CURSOR_INVALID"],
    ["RefNotFound", 404, "GIT_REF_NOT_FOUND"],
    ["ProviderUnavailable", 503, "GIT_PROVIDER_UNAVAILABLE"],
  ] as const)("whose server reports %s answers %i %s", async (failure, status, code) => {
    git.failure = new GitError(failure, "as the server says");
    expect(statusAndCode(await call("GET", "/connections/gread/repositories"))).toEqual([status, code]);
  });

  // Shows: docs/git.md#over-v1: 409 `GIT_CAPABILITY_UNAVAILABLE` | the connection does not have this
  it("that may not list repositories is refused without a request to the server", async () => {
    await putConnection(harness.kube, ORGANIZATION, "gshy");
    const capabilities = {
      repositoryDiscovery: false,
      pushDeploy: true,
      nativePreviews: false,
      versionDeploy: true,
    };
    const ref = { namespace: `slipway-org-${ORGANIZATION}`, name: "gshy" };
    await harness.kube.patch(
      gitConnectionResource,
      ref,
      { status: { capabilities } },
      { subresource: "status" },
    );
    const before = git.opened.length;
    expect(statusAndCode(await call("GET", "/connections/gshy/repositories"))).toEqual([
      409,
      "GIT_CAPABILITY_UNAVAILABLE",
    ]);
    expect(git.opened.length).toBe(before);
  });
});

describe("the catalogs", () => {
  // Shows: docs/git.md#over-v1: `GET /v1/git/providers` | `api_version` and `providers`: `id`
  it("list providers with what they can do", async () => {
    const { data } = (await call("GET", "/providers")).json();
    expect(data.api_version).toBe("v1");
    expect(data.providers).toEqual([
      expect.objectContaining({ id: "github", available: false }),
      {
        id: "forgejo",
        available: true,
        repositoryDiscovery: true,
        pushDeploy: true,
        nativePreviews: false,
        versionDeploy: true,
      },
      expect.objectContaining({ id: "gitlab", available: false }),
    ]);
  });

  // Shows: docs/git.md#over-v1: `GET /v1/git/runtime-catalog` | `runtimes`: `id`, `name`, `available`
  it("list runtimes with their versions, and no image", async () => {
    const { runtimes } = (await call("GET", "/runtime-catalog")).json().data;
    expect(runtimes.map(({ id }: { id: string }) => id)).toContain("node");
    expect(JSON.stringify(runtimes)).not.toMatch(/image/);
  });
});
