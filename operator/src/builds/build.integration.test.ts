import { containerSteps, containers } from "@slipway/builder/contract";
import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import type { Build } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  BUILDS,
  BuildStack,
  digestOf,
  line,
  ORGANIZATION,
  ref,
} from "../../../test/kit/operator/build-stack.ts";
import { eventually } from "../../../test/kit/operator/harness.ts";
import { buildResource, projectResource } from "../resources.ts";
import { ledgerBuilds } from "./ledger.ts";
import { observedPod } from "./observer.ts";
import type { BuildPod } from "./pod-state.ts";

const sha = "0123456789abcdef0123456789abcdef01234567";
let stack: BuildStack;

beforeAll(async () => {
  stack = await BuildStack.start();
  stack.begin();
}, 240_000);
afterAll(() => stack?.stop());

/** All steps of a pod, well. */
async function finish(pod: BuildPod, digest: string): Promise<void> {
  for (const name of containers) {
    for (const step of containerSteps[name]) {
      await stack.kubelet.run(pod, name, line(step, 1, `${step} runs`));
    }
    const message =
      name === "fetch" ? { commitSha: sha, commitMessage: "One" } : name === "push" ? { digest } : {};
    await stack.kubelet.end(pod, name, 0, message);
  }
}

describe("on a real apiserver", () => {
  test("a build is published once, with its whole log, though the operator crashes at each step", async () => {
    await stack.makeProject("pshop");
    await stack.ask("pshop", "bone");
    const pod = await eventually(() => stack.podOf("bone"));
    await stack.restart();
    await stack.kubelet.take(pod);
    // All containers run from the beginning.
    for (const name of containers) {
      await stack.kubelet.run(pod, name, "");
    }
    for (const name of ["fetch", "build"] as const) {
      for (const step of containerSteps[name]) {
        await stack.kubelet.run(pod, name, line(step, 1, `${step} begins`));
        // Visible while it runs.
        await eventually(async () => (await stack.log("pshop", "bone")).includes(`${step}: ${step} begins`));
        await stack.restart();
        await stack.kubelet.run(pod, name, line(step, 2, `${step} ends`));
      }
      await stack.kubelet.end(pod, name, 0, name === "fetch" ? { commitSha: sha, commitMessage: "One" } : {});
    }
    expect(await stack.row("pshop", "bone")).toMatchObject({ status: "building" });
    await stack.kubelet.run(pod, "push", line("push", 1, "push begins"));
    await stack.halt();
    await stack.kubelet.end(pod, "push", 0, { digest: digestOf("a") });
    const built = await eventually(() => stack.podOf("bone"));
    const { from = "", until = "" } = observedPod(built).ran ?? {};
    stack.begin();
    await eventually(async () => (await stack.project("pshop")).status?.build?.imageBuild === "bone");
    expect((await stack.project("pshop")).status?.build?.image).toEqual({
      reference: "registry.example/alpha/pshop",
      digest: digestOf("a"),
    });
    expect(await stack.phase("bone")).toBe("building");
    await stack.restart();
    await stack.deploy("pshop", digestOf("a"), "succeeded");
    await eventually(async () => (await stack.phase("bone")) === "success");
    expect((await stack.project("pshop")).status?.build).toMatchObject({
      publishedBuild: "bone",
      commitSha: sha,
    });
    expect(await stack.row("pshop", "bone")).toMatchObject({
      status: "success",
      digest: digestOf("a"),
      commit_sha: sha,
      commit_message: "One",
      // Of its containers: not of what operators did meanwhile.
      ran_from: new Date(from),
      ran_until: new Date(until),
    });
    expect(await stack.log("pshop", "bone")).toEqual([
      ...["fetch", "plan", "build"].flatMap((step) => [`${step}: ${step} begins`, `${step}: ${step} ends`]),
      "push: push begins",
      "publish: The new version serves. (final)",
    ]);
    // There was only this pod, and it is deleted.
    expect(pod.metadata.name).toMatch(/-1$/);
    await stack.kubelet.reap();
    await eventually(async () => !(await stack.podOf("bone")));
    const secrets = await stack.cluster.client.listAll<KubernetesObject>(resources.secrets, {
      namespace: BUILDS,
    });
    const owned = secrets.filter(({ metadata }) => metadata?.name?.startsWith(pod.metadata.name));
    expect(owned.map(({ metadata }) => metadata?.ownerReferences?.[0]?.uid)).toEqual(
      owned.map(() => pod.metadata.uid),
    );
    expect(owned.map(({ metadata }) => metadata?.name?.split("-").at(-1))).toEqual(["fetch", "push"]);
  });

  test("a newer build supersedes a running one, whose pod is stopped first", async () => {
    await stack.makeProject("pnew");
    await stack.ask("pnew", "ba");
    const first = await eventually(() => stack.podOf("ba"));
    await stack.kubelet.take(first);
    await stack.kubelet.run(first, "fetch", line("fetch", 1, "fetch begins"));
    await eventually(async () => (await stack.build("ba"))?.status?.step === "fetch");
    await stack.ask("pnew", "bb");
    await eventually(async () => (await stack.phase("ba")) === "superseded");
    expect(await stack.podOf("bb")).toBeUndefined();
    await stack.kubelet.reap();
    const second = await eventually(() => stack.podOf("bb"));
    await stack.kubelet.take(second);
    await finish(second, digestOf("b"));
    await eventually(async () => (await stack.project("pnew")).status?.build?.imageBuild === "bb");
    await stack.deploy("pnew", digestOf("b"), "failed");
    await eventually(async () => (await stack.phase("bb")) === "failed");
    expect((await stack.build("bb"))?.status).toMatchObject({
      errorCode: "PROJECT_PUBLISH_FAILED",
      step: "publish",
    });
    expect((await stack.project("pnew")).status).toMatchObject({
      buildFailure: { code: "PROJECT_PUBLISH_FAILED" },
    });
    const superseded = await stack.row("pnew", "ba");
    expect(superseded).toMatchObject({ status: "superseded", ran_from: expect.any(Date) });
    expect(superseded?.ran_until?.getTime()).toBeGreaterThanOrEqual(
      superseded?.ran_from?.getTime() ?? Number.NaN,
    );
    expect((await stack.log("pnew", "ba")).at(-1)).toMatch(/\(final\)$/);
    await stack.kubelet.reap();
  });

  test("builds of an organization wait for quota; a classified failure ends one and releases its quota", async () => {
    await stack.makeProject("pq1");
    await stack.makeProject("pq2");
    await stack.ask("pq1", "bq1");
    const first = await eventually(() => stack.podOf("bq1"));
    await stack.ask("pq2", "bq2");
    await eventually(async () => (await stack.row("pq2", "bq2"))?.status === "pending");
    expect(await stack.podOf("bq2")).toBeUndefined();
    await stack.kubelet.take(first);
    await stack.kubelet.run(first, "fetch", line("fetch", 1, "looking for it"));
    const why = { code: "GIT_COMMIT_UNAVAILABLE", message: "It is gone. Push again." };
    await stack.kubelet.end(first, "fetch", 1, why);
    await eventually(async () => (await stack.phase("bq1")) === "failed");
    expect(await stack.row("pq1", "bq1")).toMatchObject({ error_code: why.code, error_message: why.message });
    expect(await stack.log("pq1", "bq1")).toEqual(["fetch: looking for it", `fetch: ${why.message} (final)`]);
    await stack.kubelet.reap();
    await eventually(() => stack.podOf("bq2"));
  });

  test("a pod that vanishes is recreated, but not for ever", async () => {
    // The build that waited in the queue.
    const first = await eventually(() => stack.podOf("bq2"));
    await stack.kubelet.take(first);
    await stack.kubelet.run(first, "fetch", "");
    await eventually(async () => (await stack.build("bq2"))?.status?.ranFrom);
    await stack.cluster.client.delete(resources.pods, first.metadata, { gracePeriodSeconds: 0 });
    const second = await eventually(async () => {
      const now = await stack.podOf("bq2");
      return now && now.metadata.uid !== first.metadata.uid && now;
    });
    expect(second.metadata.name).toMatch(/-2$/);
    await eventually(async () => (await stack.build("bq2"))?.status?.ranFrom === undefined);
    await stack.cluster.client.delete(resources.pods, second.metadata, { gracePeriodSeconds: 0 });
    await eventually(async () => (await stack.phase("bq2")) === "failed");
    expect((await stack.build("bq2"))?.status?.errorCode).toBe("BUILD_ENGINE_FAILED");
    expect(await stack.row("pq2", "bq2")).toMatchObject({ ran_from: null, ran_until: null });
  });
});

describe("sources of kubectl", () => {
  const builds = async (project: string) =>
    (await stack.cluster.client.listAll<Build>(buildResource, { namespace: ORGANIZATION })).filter(
      ({ spec }) => spec.projectRef.name === project,
    );
  const revision = async (name: string) => (await stack.project(name)).spec.sourceRevision?.number;
  const change = async (name: string, given: object) =>
    stack.cluster.client.patch(projectResource, ref(name), { spec: { source: given } });

  test("get their first build automatically, and another with each change where pushes are published", async () => {
    await stack.restart({ builds: { hasBuilds: ledgerBuilds(stack.ledger).hasBuilds } });
    await stack.makeProject("pgit");
    await eventually(async () => (await revision("pgit")) === 1);
    const [first, ...others] = await builds("pgit");
    expect(others).toEqual([]);
    expect(first?.spec).toMatchObject({ triggeredBy: "creation", branch: "main", sourceRevision: 1 });
    const lastBuild = async () => (await stack.project("pgit")).status?.build?.lastBuild;
    await eventually(async () => (await lastBuild()) === first?.metadata.name);
    await change("pgit", { branch: "next" });
    await eventually(async () => (await revision("pgit")) === 2);
    const second = (await builds("pgit")).find(({ spec }) => spec.triggeredBy === "settings");
    expect(second?.spec).toMatchObject({ branch: "next", sourceRevision: 2, source: { branch: "next" } });
    await eventually(async () => (await lastBuild()) === second?.metadata.name);
    await eventually(async () => (await stack.phase(first?.metadata.name ?? "")) === "superseded");
  });

  test("are only counted where builds are requested by clients", async () => {
    await stack.makeProject("pmanual", { autoDeploy: false });
    await eventually(async () => (await revision("pmanual")) === 1);
    await change("pmanual", { branch: "next" });
    await eventually(async () => (await revision("pmanual")) === 2);
    expect(await builds("pmanual")).toHaveLength(1);
    // One that had a build before it was reconciled.
    expect((await builds("pshop")).map(({ metadata }) => metadata.name)).toEqual(["bone"]);
    await eventually(async () => (await revision("pshop")) === 1);
  });
});
