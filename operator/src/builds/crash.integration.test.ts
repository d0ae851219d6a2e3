import { containerSteps, containers } from "@slipway/builder/contract";
import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import type { Build, Project } from "@slipway/crds";
import { recordBuild, recordBuildLog } from "@slipway/ledger";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BUILDS, BuildStack, digestOf, line, ORGANIZATION } from "../../../test/kit/operator/build-stack.ts";
import { CrashingProcess, type WriteKey } from "../../../test/kit/operator/crashing-process.ts";
import { eventually } from "../../../test/kit/operator/harness.ts";
import { buildResource } from "../resources.ts";
import { ledgerBuilds } from "./ledger.ts";

/** One operator after the other crashes right after each write that none before it has made. */

const sha = "0123456789abcdef0123456789abcdef01234567";
let stack: BuildStack;
const written = new Set<WriteKey>();
let lives = 0;

beforeAll(async () => {
  stack = await BuildStack.start();
}, 240_000);
afterAll(() => stack?.stop());

/** An operator whose writes are counted, until it crashes or is stopped. */
async function live(signal: AbortSignal): Promise<void> {
  const life = await CrashingProcess.start(stack.cluster.api.url, written);
  lives += 1;
  const { ledger } = stack;
  const operator = stack.operator({
    server: life.server,
    builds: {
      record: (row) =>
        life.write(`record ${row.id} ${row.status} ${row.commit_sha} ${row.digest}`, () =>
          recordBuild(ledger, row),
        ),
      storeLog: ({ organizationId, projectId, buildId: id }, lines) =>
        life.write(`log ${id} up to ${lines.at(-1)?.sequence}`, () =>
          recordBuildLog(ledger, { organizationId, projectId, id }, lines),
        ),
      hasBuilds: ledgerBuilds(ledger).hasBuilds,
    },
  });
  const ended = new Promise<void>((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true }),
  );
  await Promise.race([life.ended, ended]);
  life.kill();
  await operator.stop();
}

/** One operator after the other. @returns what ends the last of them */
function mortals(): () => Promise<void> {
  const over = new AbortController();
  const living = (async () => {
    while (!over.signal.aborted) {
      await live(over.signal);
    }
  })();
  return async () => {
    over.abort();
    await living;
  };
}

const buildOf = async (project: string): Promise<Build | undefined> =>
  (await stack.cluster.client.listAll<Build>(buildResource, { namespace: ORGANIZATION })).find(
    ({ spec }) => spec.projectRef.name === project,
  );

/** Plays the node and the projects' controller: continues as soon as the operator has recorded the step before. */
async function carryOut(projectId: string): Promise<string> {
  const { name } = (await eventually(() => buildOf(projectId))).metadata;
  const pod = await eventually(() => stack.podOf(name));
  await stack.kubelet.take(pod);
  for (const container of containers) {
    await stack.kubelet.run(pod, container, "");
  }
  for (const container of containers) {
    for (const step of containerSteps[container]) {
      for (const [index, word] of ["begins", "goes on", "ends"].entries()) {
        await stack.kubelet.run(pod, container, line(step, index + 1, `${step} ${word}`));
        await eventually(async () => (await stack.log(projectId, name)).includes(`${step}: ${step} ${word}`));
      }
    }
    await eventually(async () => (await stack.build(name))?.status?.step === container);
    const message =
      container === "fetch"
        ? { commitSha: sha, commitMessage: "One" }
        : container === "push"
          ? { digest: digestOf("c") }
          : {};
    await stack.kubelet.end(pod, container, 0, message);
  }
  await eventually(async () => (await stack.project(projectId)).status?.build?.imageBuild === name);
  await eventually(async () => !(await stack.podOf(name)));
  await stack.deploy(projectId, digestOf("c"), "succeeded");
  await eventually(async () => (await stack.phase(name)) === "success");
  return name;
}

test("a source's first build is published once, with each line of its log once, though every write is some operator's last", async () => {
  const end = mortals();
  await stack.makeProject("pmortal");
  const name = await carryOut("pmortal");
  await eventually(async () => (await stack.project("pmortal")).spec.sourceRevision);
  await end();

  const builds = await stack.cluster.client.listAll<Build>(buildResource, { namespace: ORGANIZATION });
  expect(builds.map(({ metadata }) => metadata.name)).toEqual([name]);
  const { status }: Project = await stack.project("pmortal");
  expect(status?.build).toMatchObject({
    lastBuild: name,
    imageBuild: name,
    publishedBuild: name,
    commitSha: sha,
    image: { reference: "registry.example/alpha/pmortal", digest: digestOf("c") },
  });
  expect(await stack.row("pmortal", name)).toMatchObject({ status: "success", digest: digestOf("c") });
  expect(await stack.log("pmortal", name)).toEqual([
    ...["fetch", "plan", "build", "push"].flatMap((step) =>
      ["begins", "goes on", "ends"].map((word) => `${step}: ${step} ${word}`),
    ),
    "publish: The new version serves. (final)",
  ]);

  const keys = [...written].map((key) => key.replaceAll(name, "<build>"));
  const pods = keys.filter((key) => key.startsWith(`POST /api/v1/namespaces/${BUILDS}/pods`));
  expect(pods).toHaveLength(1);
  expect(pods[0]).toMatch(/-1$/);
  const secrets = await stack.cluster.client.listAll<KubernetesObject>(resources.secrets, {
    namespace: BUILDS,
  });
  expect(secrets.map(({ metadata }) => metadata?.name?.split("-").at(-1)).toSorted()).toEqual([
    "fetch",
    "push",
  ]);
  // One crashed after each of these, among others.
  for (const write of [
    /^POST .*\/builds\/<build>$/,
    /^PATCH .*\/projects\/pmortal .*"number":1/,
    /^PATCH .*\/builds\/<build> .*"slipway.dev\/build"/,
    /^record <build> pending/,
    /^PATCH .*\/projects\/pmortal\/status .*lastBuild/,
    /networkpolicies/,
    /persistentvolumeclaims/,
    /-1-fetch$/,
    /-1-push$/,
    /^PUT .*\/builds\/<build>\/status .*"building"/,
    /^record <build> building/,
    /^log <build> up to 1000001$/,
    /^log <build> up to 4000003$/,
    /^PUT .*\/builds\/<build>\/status .*"publish"/,
    /^PATCH .*\/projects\/pmortal\/status .*imageBuild/,
    /^DELETE .*\/pods\//,
    /^PATCH .*\/projects\/pmortal\/status .*publishedBuild/,
    /^log <build> up to 5999999$/,
    /^record <build> success/,
    /^PUT .*\/builds\/<build>\/status .*"success"/,
  ]) {
    expect(
      keys.some((key) => write.test(key)),
      `${write} in\n${keys.join("\n")}`,
    ).toBe(true);
  }
  // Few crashed with two concurrent writes.
  expect(lives).toBeGreaterThan(written.size / 2);
}, 240_000);

test("a build that fails has failed once, with its reason at the end of its log", async () => {
  const end = mortals();
  await stack.makeProject("pfailing", { autoDeploy: false });
  const { name } = (await eventually(() => buildOf("pfailing"))).metadata;
  const pod = await eventually(() => stack.podOf(name));
  await stack.kubelet.take(pod);
  await stack.kubelet.run(pod, "fetch", line("fetch", 1, "fetch begins"));
  await eventually(async () => (await stack.log("pfailing", name)).length === 1);
  const why = { code: "GIT_COMMIT_UNAVAILABLE", message: "It is gone. Push again." };
  await stack.kubelet.run(pod, "fetch", line("fetch", 2, "fetch ends"));
  await stack.kubelet.end(pod, "fetch", 1, why);
  await eventually(async () => (await stack.phase(name)) === "failed");
  await eventually(async () => !(await stack.podOf(name)));
  await end();
  expect(await stack.log("pfailing", name)).toEqual([
    "fetch: fetch begins",
    "fetch: fetch ends",
    `fetch: ${why.message} (final)`,
  ]);
  expect(await stack.row("pfailing", name)).toMatchObject({ status: "failed", error_code: why.code });
  expect((await stack.project("pfailing")).status).toMatchObject({
    build: { lastBuild: name },
    buildFailure: { buildId: name, code: why.code },
  });
  expect([...written].filter((key) => key.startsWith("POST") && key.includes(`pods/${name}`))).toHaveLength(
    1,
  );
  await stack.kubelet.reap();
}, 240_000);

test("a build that another one supersedes ends once, and the other is published once", async () => {
  const end = mortals();
  await stack.makeProject("povertaken");
  const first = (await eventually(() => buildOf("povertaken"))).metadata.name;
  const pod = await eventually(() => stack.podOf(first));
  await stack.kubelet.take(pod);
  await stack.kubelet.run(pod, "fetch", line("fetch", 1, "fetch begins"));
  await eventually(async () => (await stack.build(first))?.status?.step === "fetch");
  await stack.ask("povertaken", "bovertaking");
  await eventually(async () => (await stack.phase(first)) === "superseded");
  await eventually(async () => !(await stack.podOf(first)));
  await stack.kubelet.reap();
  const next = await eventually(() => stack.podOf("bovertaking"));
  await stack.kubelet.take(next);
  for (const container of containers) {
    for (const step of containerSteps[container]) {
      await stack.kubelet.run(next, container, line(step, 1, step));
    }
    const message =
      container === "fetch" ? { commitSha: sha } : container === "push" ? { digest: digestOf("d") } : {};
    await stack.kubelet.end(next, container, 0, message);
  }
  await eventually(
    async () => (await stack.project("povertaken")).status?.build?.imageBuild === "bovertaking",
  );
  await stack.deploy("povertaken", digestOf("d"), "succeeded");
  await eventually(async () => (await stack.phase("bovertaking")) === "success");
  await end();
  expect((await stack.row("povertaken", first))?.status).toBe("superseded");
  expect((await stack.log("povertaken", first)).filter((each) => each.endsWith("(final)"))).toHaveLength(1);
  expect(await stack.log("povertaken", "bovertaking")).toEqual([
    ...["fetch", "plan", "build", "push"].map((step) => `${step}: ${step}`),
    "publish: The new version serves. (final)",
  ]);
  expect((await stack.project("povertaken")).status?.build).toMatchObject({
    lastBuild: "bovertaking",
    publishedBuild: "bovertaking",
  });
}, 240_000);
