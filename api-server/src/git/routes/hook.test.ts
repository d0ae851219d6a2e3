import { readFileSync } from "node:fs";
import { GitError, sealRepositoryId, signBody } from "@slipway/git";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type MemoryBuilds, memoryBuilds } from "../../../../test/kit/api-server/builds.ts";
import { FAKE_SHA, type FakeGit, fakeGit, putConnection } from "../../../../test/kit/api-server/git.ts";
import { type FakeHarness, startFakeHarness } from "../../../../test/kit/api-server/harness.ts";
import { eventually } from "../../../../test/kit/processes/eventually.ts";
import type { ApiProject } from "../../projects/api-project.ts";

const ORGANIZATION = "hooks";
const NEWER = "c".repeat(40);
let harness: FakeHarness;
let git: FakeGit;
let store: MemoryBuilds;
beforeAll(async () => {
  git = fakeGit();
  store = memoryBuilds();
  harness = await startFakeHarness({ git, builds: { store } });
  await harness.namespace(ORGANIZATION);
  await putConnection(harness.kube, ORGANIZATION, "ghook");
  await eventually(
    "it to be known",
    () => harness.services.connections.organizationOf("ghook") === ORGANIZATION,
  );
  const source = (change: object) => ({
    image: undefined,
    build: {},
    source: {
      connectionId: "ghook",
      repositoryId: sealRepositoryId("ghook", "17"),
      branch: "main",
      autoDeploy: false,
      ...change,
    },
  });
  await harness.project(ORGANIZATION, "ppush", source({ autoDeploy: true }));
  await harness.project(ORGANIZATION, "pother", source({ autoDeploy: true, branch: "next" }));
  await harness.project(ORGANIZATION, "pmanual", source({}));
  const versionDeploy = { enabled: true, event: "tag", tagPattern: "v*" };
  await harness.project(ORGANIZATION, "ptag", source({ versionDeploy }));
  const elsewhere = sealRepositoryId("ghook", "18");
  await harness.project(ORGANIZATION, "pforeign", source({ autoDeploy: true, repositoryId: elsewhere }));
});
afterAll(() => harness.close());
beforeEach(() => {
  store.builds.clear();
  store.triggers.clear();
  git.failure = undefined;
  git.refs = new Map([
    ["main", FAKE_SHA],
    ["v1.0.0", FAKE_SHA],
    [FAKE_SHA, FAKE_SHA],
  ]);
});

/** As Gitea 1.26 sends it, about the repository of the fake server. */
const recorded = (name: string) => {
  const file = new URL(
    `../../../../packages/git/src/delivery/testdata/gitea-1.26/${name}.json`,
    import.meta.url,
  );
  const { headers, body } = JSON.parse(readFileSync(file, "utf8"));
  const event = JSON.parse(body);
  event.repository.id = 17;
  return { headers: headers as Record<string, string>, event };
};
let delivery = 0;
function deliver(
  name: string,
  change: { secret?: string; id?: string; body?: object; connection?: string } = {},
) {
  const { headers, event } = recorded(name);
  const payload = JSON.stringify({ ...event, ...change.body });
  const signature = signBody(change.secret ?? "hook-secret", Buffer.from(payload));
  const own = Object.fromEntries(
    Object.entries(headers).filter(([key]) => !/signature|length|host/i.test(key)),
  );
  return harness.app.inject({
    method: "POST",
    url: `/v1/git/hooks/${change.connection ?? "ghook"}`,
    headers: {
      ...own,
      "x-gitea-delivery": change.id ?? `0a1b2c3d-1000-${++delivery}`,
      "x-gitea-signature": signature,
    },
    payload,
  });
}
/** What was started, once the queue is worked off. */
const started = async () => {
  await eventually("the queue to be worked off", () => store.waiting() === 0);
  return startedSoFar();
};
const startedSoFar = () =>
  [...store.builds.values()].map(({ project_id, triggered_by, branch, tag, commit_sha }) => [
    project_id,
    triggered_by,
    branch ?? tag,
    commit_sha,
  ]);

describe("a delivery", () => {
  // Shows: docs/git.md#source-and-builds-over-v1: `POST /v1/git/hooks/:connectionId` | 202 and
  it("of a push builds the projects of that branch, and no other", async () => {
    const answer = await deliver("push-branch", { body: { ref: "refs/heads/main", after: FAKE_SHA } });
    expect([answer.statusCode, answer.json().data]).toEqual([202, { outcome: "taken" }]);
    expect(await started()).toEqual([["ppush", "push", "main", FAKE_SHA]]);
  });

  it("that comes again, or under another id, builds nothing again", async () => {
    const body = { ref: "refs/heads/main", after: FAKE_SHA };
    await deliver("push-branch", { id: "0a1b2c3d-0001-same", body });
    expect((await deliver("push-branch", { id: "0a1b2c3d-0001-same", body })).json().data).toEqual({
      outcome: "duplicate",
    });
    expect((await deliver("push-branch", { id: "0a1b2c3d-0002-another", body })).json().data).toEqual({
      outcome: "taken",
    });
    expect(await started()).toHaveLength(1);
  });

  it("that comes late builds what the branch is now", async () => {
    git.refs?.set("main", NEWER);
    await deliver("push-branch", { body: { ref: "refs/heads/main", after: FAKE_SHA } });
    expect(await started()).toEqual([["ppush", "push", "main", NEWER]]);
  });

  it("of a tag builds where tags are published, unless it was there before", async () => {
    const tag = { ref: "v1.0.0", ref_type: "tag", sha: FAKE_SHA };
    await deliver("create-tag", { body: tag });
    expect(await started()).toEqual([["ptag", "tag", "v1.0.0", FAKE_SHA]]);
    store.builds.clear();
    store.triggers.clear();
    const tagged = (await harness.projects.find(ORGANIZATION, "ptag")) as ApiProject;
    store.triggers.set(`${tagged.resource.metadata.uid} tag v1.0.0 ${FAKE_SHA}`, null);
    await deliver("create-tag", { body: tag });
    expect(await started()).toEqual([]);
  });

  // Shows: docs/git.md#source-and-builds-over-v1: 401 `GIT_DELIVERY_UNSIGNED` | a delivery is not signed
  it("is refused without the connection's secret, whether there is such a connection or not", async () => {
    for (const change of [{ secret: "guess" }, { connection: "gnone" }]) {
      const answer = await deliver("push-branch", change);
      expect([answer.statusCode, answer.json().code]).toEqual([401, "GIT_DELIVERY_UNSIGNED"]);
    }
    const empty = await harness.app.inject({ method: "POST", url: "/v1/git/hooks/ghook" });
    expect(empty.statusCode).toBe(401);
    expect(await started()).toEqual([]);
  });

  // Shows: docs/git.md#hooks: one that was answered is not lost with its process, and is retried ten
  it("is answered while the Git server does not answer, and tried again", async () => {
    git.failure = new GitError("ProviderUnavailable", "it does not answer");
    const body = { ref: "refs/heads/main", after: FAKE_SHA };
    expect((await deliver("push-branch", { id: "0a1b2c3d-0003-late", body })).statusCode).toBe(202);
    expect((await deliver("push-branch", { id: "0a1b2c3d-0003-late", body })).json().data).toEqual({
      outcome: "duplicate",
    });
    await eventually("a try", () => harness.logged().includes("a Git delivery is tried again"));
    expect([startedSoFar(), store.waiting()]).toEqual([[], 1]);
    git.failure = undefined;
    expect(await started()).toHaveLength(1);
  });

  it("is bounded, and read as what it says it is alone", async () => {
    const large = await deliver("push-branch", { body: { padding: "x".repeat(1024 * 1024) } });
    expect(large.statusCode).toBe(413);
  });
});
