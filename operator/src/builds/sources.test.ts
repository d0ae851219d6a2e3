import { KubeClient } from "@slipway/controller-runtime";
import type { Build, GitConnection } from "@slipway/crds";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { type GithubServer, startGithub } from "../../../test/kit/git/github-server.ts";
import { exampleBuild } from "../../../test/kit/operator/builds.ts";
import { gitConnectionResource } from "../resources.ts";
import { type SourceOptions, sourceOpener } from "./sources.ts";

/** Where a GitHub build is fetched from, and every reason why it is not, against GitHub's documentation. */

const namespace = "slipway-org-alpha";
const signal = new AbortController().signal;
let api: FakeApiserver;
let client: KubeClient;
let github: GithubServer;

beforeAll(async () => {
  [api, github] = await Promise.all([FakeApiserver.start(), startGithub()]);
  client = KubeClient.forUrl(api.url);
  await client.create<GitConnection>(gitConnectionResource, {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "GitConnection",
    metadata: { name: "g1", namespace },
    spec: {
      providerId: "github",
      instanceUrl: "https://github.com",
      displayName: "octocat",
      credentialRef: { name: "none" },
      installationId: "5",
      account: "octocat",
      revision: 1,
    },
  });
});
afterAll(async () => {
  await client.close();
  await api.stop();
  await github.close();
});
beforeEach(() => {
  github.state = "installed";
  github.minted.length = 0;
  const full_name = "octocat/Hello-World";
  github.repositories = [{ id: 7, full_name, branches: {}, tags: {}, hooks: new Map() }];
});

function open(change: object = {}, options: Partial<SourceOptions> = {}, of = namespace) {
  const example = exampleBuild("b1", 1);
  const { source: _source, build: _build, ...spec } = example.spec;
  const repository = {
    repositoryOwner: "octocat",
    repositoryName: "hello-world",
    branch: "main",
    autoDeploy: true,
  };
  const build = {
    ...example,
    metadata: { ...example.metadata, namespace: of },
    spec: { ...spec, github: { ...repository, ...change } },
  } as Build;
  const allowedHosts = [github.host];
  const all = { client, allowedHosts, ca: github.ca, githubApp: () => github.app, ...options };
  return sourceOpener(all)(build, signal);
}
const codeOf = (opening: Promise<unknown>) =>
  opening.then(
    () => undefined,
    (error: { failure?: { code: string } }) => error.failure?.code ?? error,
  );

describe("a build of GitHub's", () => {
  test("is fetched with a token of its own, which reads one repository and is created for the build", async () => {
    const first = await open();
    expect(first.address).toMatchObject({ url: `${github.url}/octocat/Hello-World.git`, provider: "github" });
    expect(first.credential).toEqual({
      username: "x-access-token",
      password: expect.stringMatching(/^ghs_/),
    });
    const second = await open();
    expect(second.credential?.password).not.toBe(first.credential?.password);
    const scoped = { repository_ids: [7], permissions: { contents: "read" } };
    expect(github.minted.filter((body) => body !== undefined)).toEqual([scoped, scoped]);
  });

  // Shows: docs/git.md#github: `GITHUB_ACCESS_TOKEN_MISSING` | the organization has no account of
  test.each([
    ["an organization without an account", {}, {}, "slipway-org-other"],
    ["a platform without an App", {}, { githubApp: () => undefined }, namespace],
  ])("of %s has no token", async (_, change, options, of) => {
    expect(await codeOf(open(change, options, of))).toBe("GITHUB_ACCESS_TOKEN_MISSING");
  });

  // Shows: docs/git.md#github: `GITHUB_REPOSITORY_AUTH_FAILED` | the installation does not see the
  test("whose repository the installation does not see is rejected", async () => {
    expect(await codeOf(open({ repositoryName: "other" }))).toBe("GITHUB_REPOSITORY_AUTH_FAILED");
  });

  // Shows: docs/git.md#github: `GITHUB_REPOSITORY_REAUTHORIZATION_REQUIRED` | the App was suspended
  test.each(["suspended", "removed", "sso"] as const)(
    "needs the access to be authorized again when it is %s",
    async (state) => {
      github.state = state;
      expect(await codeOf(open())).toBe("GITHUB_REPOSITORY_REAUTHORIZATION_REQUIRED");
    },
  );
});
