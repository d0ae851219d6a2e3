import { KubeClient, Store } from "@slipway/controller-runtime";
import { type Build, nextSourceRevision, type Project } from "@slipway/crds";
import { GitError } from "@slipway/git";
import type { BuildTrigger, KnownBuildTrigger } from "@slipway/ledger";
import { silentLogger } from "@slipway/process";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { exampleBuild } from "../../../test/kit/operator/builds.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { buildResource } from "../resources.ts";
import { BuildPoller, MAX_BACKOFF_MS, nextPollAt, POLL_INTERVAL_MS } from "./poller.ts";
import type { OpenProvider } from "./sources.ts";
import { triggerKey } from "./triggers.ts";

const namespace = "slipway-org-alpha";
const sha = (letter: string) => letter.repeat(40);
const signal = new AbortController().signal;
const later = 2 * POLL_INTERVAL_MS;

let api: FakeApiserver;
let client: KubeClient;
let clock: FakeClock;
let projects: Store<Project>;
let builds: Store<Build>;
let poller: BuildPoller;
let ledger: Map<string, KnownBuildTrigger>;
let recorded: Set<string>;
let head: string | GitError;
let tags: { name: string; commitSha: string }[];
let releases: { id: string; tag: string; draft: boolean; prerelease: boolean }[];
let asked: number;
let version = 0;

const source = { connectionId: "g1", repositoryId: "r1", branch: "main", autoDeploy: true };
function use(given: Partial<NonNullable<Project["spec"]["source"]>>, revision = 1): void {
  const project = exampleProject({ namespace, name: "pshop" });
  const { image: _image, ...rest } = project.spec;
  const spec = { ...rest, source: { ...source, ...given }, build: {} };
  const sourceRevision = { ...nextSourceRevision(spec, { ...project, spec }), number: revision };
  const metadata = { ...project.metadata, uid: "uid-1", resourceVersion: String(++version) };
  projects.replace([{ ...project, metadata, spec: { ...spec, sourceRevision } }], String(version));
}
const byTag = (tagPattern: string) => ({
  autoDeploy: false,
  versionDeploy: { enabled: true, event: "tag" as const, tagPattern },
});

const open = (async () => {
  const commit = async () => {
    asked += 1;
    if (head instanceof GitError) {
      throw head;
    }
    return { sha: head, title: "" };
  };
  return { provider: { commit, tags: async () => tags, releases: async () => releases }, repository: "7" };
}) as unknown as OpenProvider;

const newPoller = (opened = open) =>
  new BuildPoller({
    client,
    clock,
    projects,
    builds,
    open: opened,
    log: silentLogger,
    ledger: {
      known: async (_project, triggers) => triggers.flatMap((one) => ledger.get(triggerKey(one)) ?? []),
      record: async (triggers) => triggers.forEach((one) => void keep(one, null)),
      claim: async (trigger, id) => keep(trigger, id).buildId,
      hasBuild: async (_project, _organization, id) => recorded.has(id),
    },
  });
const keep = (trigger: BuildTrigger, buildId: string | null): KnownBuildTrigger => {
  const key = triggerKey(trigger);
  const kept = ledger.get(key) ?? { ...trigger, buildId, seenAt: clock.now() };
  ledger.set(key, kept);
  return kept;
};

/** A round long after the last one. */
async function look(): Promise<Build[]> {
  await clock.advance(later);
  await poller.round(signal);
  const { items } = await client.list<Build>(buildResource, { namespace });
  return items;
}

beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
  clock = new FakeClock();
  projects = new Store<Project>();
  builds = new Store<Build>();
  ledger = new Map();
  recorded = new Set();
  [head, tags, releases, asked] = [sha("a"), [], [], 0];
  poller = newPoller();
  use({});
  await poller.round(signal);
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

test("a push is built once, and what existed before is not", async () => {
  expect(await look()).toEqual([]);
  head = sha("b");
  const [build, ...others] = await look();
  expect(others).toEqual([]);
  expect(build).toMatchObject({
    metadata: { ownerReferences: [{ kind: "Project", name: "pshop", uid: "uid-1" }] },
    spec: { triggeredBy: "push", branch: "main", commitSha: sha("b"), sourceRevision: 1, source },
  });
  recorded.add(build?.metadata.name ?? "");
  poller = newPoller();
  await look();
  expect(await look()).toHaveLength(1);
});

// Shows: docs/builds.md#triggers: At most eight polls run at once, two of them of one organization
test("forty projects of one organization whose Git server does not answer delay nobody else's", async () => {
  const [example] = projects.list() as [Project];
  const inOrganization = (organization: string, index: number): Project => {
    const of = {
      namespace: `slipway-org-${organization}`,
      name: `p${index}`,
      uid: `${organization}-${index}`,
    };
    return { ...example, metadata: { ...example.metadata, ...of } };
  };
  const all = Array.from({ length: 40 }, (_, index) => inOrganization("alpha", index));
  projects.replace([...all, inOrganization("beta", 0)], String(++version));
  const opened: string[] = [];
  const stop = new AbortController();
  const onStop = new Promise<never>((_resolve, reject) => {
    stop.signal.addEventListener("abort", () => reject(stop.signal.reason));
  });
  const running = newPoller((organizationsNamespace, ...more) => {
    opened.push(organizationsNamespace ?? "");
    return organizationsNamespace === namespace ? onStop : open(organizationsNamespace, ...more);
  }).run(stop.signal);
  for (let seconds = 0; seconds < 300; seconds += 1) {
    await clock.advance(1_000);
  }
  const ofBeta = opened.filter((one) => one === "slipway-org-beta");
  // Each minute, from some second of the first on; and few of the other's at once.
  expect(ofBeta.length).toBeGreaterThanOrEqual(4);
  expect(opened.length - ofBeta.length).toBe(2);
  stop.abort();
  await running;
});

test("a trigger that a delivery claimed is not built again, unless its build was never created", async () => {
  await look();
  head = sha("b");
  const trigger = {
    organizationId: "alpha",
    projectUid: "uid-1",
    trigger: "push",
    ref: "main",
    commitSha: head,
  };
  keep(trigger, "bfromhook");
  recorded.add("bfromhook");
  expect(await look()).toEqual([]);
  recorded.clear();
  expect((await look()).map(({ metadata }) => metadata.name)).toEqual(["bfromhook"]);
  await client.delete(buildResource, { namespace, name: "bfromhook" });
  await clock.advance(3_600_000);
  expect(await look()).toEqual([]);
});

test("matching tags are built; the others are not built later either", async () => {
  tags = [{ name: "v1.0.0", commitSha: sha("a") }];
  use(byTag("v*"));
  expect(await look()).toEqual([]);
  tags = [...tags, { name: "v1.1.0", commitSha: sha("b") }, { name: "nightly", commitSha: sha("c") }];
  expect((await look()).map(({ spec }) => spec.tag)).toEqual(["v1.1.0"]);
  use(byTag("*"));
  expect(await look()).toHaveLength(1);
});

test.each(["tag", "release"] as const)(
  "of several new versions by %s the newest is requested last",
  async (event) => {
    use({ autoDeploy: false, versionDeploy: { enabled: true, event, tagPattern: "v*" } });
    await look();
    // As Git servers list them.
    tags = ["v3", "v2", "v1"].map((name) => ({ name, commitSha: sha("b") }));
    releases = tags.map(({ name: tag }) => ({ id: tag, tag, draft: false, prerelease: false }));
    await look();
    const claimed = [...ledger.values()].filter(({ buildId }) => buildId !== null);
    expect(claimed.map(({ ref }) => ref)).toEqual(["v1", "v2", "v3"]);
  },
);

test("changed settings get a new baseline", async () => {
  await look();
  use(byTag("*"));
  await look();
  head = sha("b");
  use({}, 3);
  expect(await look()).toEqual([]);
  head = sha("c");
  expect((await look()).map(({ spec }) => spec.commitSha)).toEqual([sha("c")]);
});

test("a push right after the first build was requested is built, though the first poll finds it", async () => {
  const first = exampleBuild("bfirst", 0);
  const ask = (commitSha: string, sourceRevision: number) =>
    builds.replace([{ ...first, spec: { ...first.spec, commitSha, sourceRevision } }], String(++version));
  ask(head as string, 1);
  head = sha("b");
  const [build] = await look();
  expect(build).toMatchObject({ spec: { triggeredBy: "push", commitSha: sha("b") } });
  recorded.add(build?.metadata.name ?? "");
  // A build of other settings does not count.
  use({}, 2);
  head = sha("c");
  expect(await look()).toHaveLength(1);
});

test("releases are built when they are published, with their tag's commit", async () => {
  use({ autoDeploy: false, versionDeploy: { enabled: true, event: "release", tagPattern: "v*" } });
  await look();
  tags = ["v1", "v2", "v3"].map((name) => ({ name, commitSha: sha("d") }));
  const release = (tag: string, draft: boolean, prerelease: boolean) => ({ id: tag, tag, draft, prerelease });
  releases = [release("v1", false, false), release("v2", true, false), release("v3", false, true)];
  const built = (await look()).map(({ spec }) => [spec.triggeredBy, spec.tag, spec.commitSha]);
  expect(built).toEqual([["release", "v1", sha("d")]]);
});

test("a server that does not answer is polled less and less often, and at the normal interval once it does", async () => {
  head = new GitError("ProviderUnavailable", "away");
  await look();
  const before = asked;
  for (let minute = 0; minute < 60; minute += 1) {
    await clock.advance(60_000);
    await poller.round(signal);
  }
  expect(asked - before).toBeLessThan(7);
  expect(nextPollAt("uid-1", 100, 0)).toBe(MAX_BACKOFF_MS);
  expect(nextPollAt("uid-1", 0, 1_000_000)).toBeGreaterThan(1_000_000);
  expect(nextPollAt("uid-1", 0, 1_000_000)).toBeLessThanOrEqual(1_000_000 + POLL_INTERVAL_MS);
});
