/** From a push to a running version, by the stack's own Git server. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildsRegistryHost } from "../../hack/cluster/addresses.ts";
import { apiClient, deleteProjects, uniqueName } from "./support/api.ts";
import { type Build, createGitProject, listBuilds, readLog, untilBuilt } from "./support/builds.ts";
import { waitAsDocumented } from "./support/documented.ts";
import { eventually } from "./support/eventually.ts";
import { connectRepository, createRepository, type Files, type Repository } from "./support/git.ts";
import { throughIngress } from "./support/ingress.ts";
import { traffic } from "./support/traffic.ts";

const call = apiClient();
const made: string[] = [];
const repositories: Repository[] = [];
afterAll(async () => {
  await deleteProjects(call, made);
  for (const repository of repositories) {
    await repository.remove();
  }
});

/** An application that says its version. */
const application = (version: string): Files => ({
  "server.js": `require("node:http")
  .createServer((request, response) => response.end(JSON.stringify({ version: "${version}", greeting: process.env.GREETING })))
  .listen(8080);
process.on("SIGTERM", () => setTimeout(() => process.exit(0), 100));
`,
});
/** Versions of tags and releases are built from it: that costs less than a build by runtime, which the other test has. */
const dockerfile: Files = {
  Dockerfile: `FROM ${buildsRegistryHost}/base/node:24
COPY server.js /app/server.js
USER 1000:1000
CMD ["node", "/app/server.js"]
`,
};
const about = { name: "shop", version: "1.0.0" };
const manifests: Files = {
  "package.json": JSON.stringify({ ...about, private: true, scripts: { start: "node server.js" } }),
  "package-lock.json": JSON.stringify({
    ...about,
    lockfileVersion: 3,
    requires: true,
    packages: { "": about },
  }),
};

let source: { connectionId: string; repositoryId: string };
let repository: Repository;
beforeAll(async () => {
  repository = await createRepository(uniqueName("shop"), {
    ...manifests,
    ...dockerfile,
    ...application("v1"),
  });
  repositories.push(repository);
  source = await connectRepository(repository);
});

const serves = (domain: string, version: string): Promise<void> =>
  eventually(async () => {
    const { status, text } = await throughIngress(domain);
    expect([status, text]).toEqual([200, expect.stringContaining(`"version":"${version}"`)]);
  });

/** The newest build of a commit, as soon as there is one. */
const untilBuilding = (id: string, sha: string): Promise<Build> =>
  eventually(
    async () => {
      const found = (await listBuilds(call, id)).find(({ commit_sha }) => commit_sha === sha);
      expect(found).toBeDefined();
      return found as Build;
    },
    { every: 100 },
  );

// Shows: docs/builds.md#tested-on-the-stack: a push is built and served; the next one, reported by the
test("a push is built and served, the next one without a failed request", { timeout: 600_000 }, async () => {
  const {
    project_id: id,
    domain,
    build_id: first,
  } = await createGitProject(call, uniqueName("shop"), source);
  made.push(id);
  await waitAsDocumented("gitconnection", source.connectionId);
  await waitAsDocumented("build", first);
  expect((await untilBuilt(call, id, first)).triggered_by).toBe("creation");
  await waitAsDocumented("project", id);
  await waitAsDocumented("domainclaim", domain);
  await serves(domain, "v1");
  const log = await readLog(call, id, first);
  const sequences = log.map(({ sequence }) => sequence);
  expect(sequences).toEqual([...new Set(sequences)].sort((a, b) => a - b));
  expect(log.length).toBeGreaterThan(5);

  expect(await repository.hooks()).toMatchObject([{ active: true }]);
  const running = traffic(domain);
  const pushedAt = performance.now();
  const second = await untilBuilding(id, await repository.commit(application("v2"), "Say v2"));
  console.log(`a build ${Math.round(performance.now() - pushedAt)} ms after the push began`);
  expect((await untilBuilt(call, id, second.id)).triggered_by).toBe("push");
  await serves(domain, "v2");
  const report = await running.stop();
  expect(report.failures).toEqual([]);
  expect(report.versions).toEqual(["v1", "v2"]);
});

// Shows: docs/builds.md#tested-on-the-stack: tags and releases in their modes: patterns, drafts and
test("a tag is built in the mode of tags, a release in that of releases, and nothing else is", {
  timeout: 600_000,
}, async () => {
  const mode = (event: string, more = {}) => ({
    source: { auto_deploy: false, version_deploy: { enabled: true, event, tag_pattern: "v*", ...more } },
    build: { runtime: "dockerfile", version: undefined, start_command: undefined },
  });
  const projects = await Promise.all(
    [mode("tag"), mode("release")].map((change) =>
      createGitProject(call, uniqueName("versions"), source, change),
    ),
  );
  const [tagged = "", released = ""] = projects.map(({ project_id }) => project_id);
  made.push(tagged, released);
  const shas = async (id: string) =>
    (await listBuilds(call, id)).map(({ commit_sha }) => commit_sha).reverse();
  // The first build is of the branch: there need be no version yet.
  const [begin = ""] = await shas(tagged);
  expect(await shas(released)).toEqual([begin]);

  // Neither a push nor what does not fit the pattern starts anything; what comes after shows that it was seen.
  await repository.commit(application("v3"));
  await repository.tag("other-1");
  const third = await repository.commit(application("v3.1"));
  await repository.tag("v3.1");
  expect((await untilBuilt(call, tagged, (await untilBuilding(tagged, third)).id)).triggered_by).toBe("tag");
  await repository.release("v3.2-draft", { draft: true });
  await repository.release("v3.2-rc", { prerelease: true });
  const fourth = await repository.commit(application("v4"));
  await repository.release("v4");
  expect((await untilBuilt(call, released, (await untilBuilding(released, fourth)).id)).triggered_by).toBe(
    "release",
  );
  expect((await untilBuilt(call, tagged, (await untilBuilding(tagged, fourth)).id)).triggered_by).toBe("tag");
  expect(await shas(released)).toEqual([begin, fourth]);
  // The tag of the pre-release is one that fits, on the commit of the tag before it: built once more or not, and no other.
  expect([...new Set(await shas(tagged))]).toEqual([begin, third, fourth]);
  for (const { domain } of projects) {
    await serves(domain, "v4");
  }

  const refused = await call("POST", `/v1/project/${tagged}/deploy`, { branch: "main" });
  expect([refused.status, refused.body.code]).toEqual([400, "GIT_VERSION_REF_OVERRIDE"]);
  const again = await call<{ build_id: string }>("POST", `/v1/project/${tagged}/deploy`);
  expect(again.status).toBe(202);
  const manual = await untilBuilt(call, tagged, again.body.data?.build_id ?? "");
  expect([manual.triggered_by, manual.commit_sha]).toEqual(["manual", fourth]);
});
