import { setTimeout as sleep } from "node:timers/promises";
import { isConflict, isNotFound, refOf, resources } from "@slipway/controller-runtime";
import { type JobRun, jobRunName } from "@slipway/crds";
import { waitFor } from "../../../hack/lib/wait.ts";
import { jobRunResource } from "../../kit/processes/job-platform.ts";
import type { ChaosEnvironment } from "./environment.ts";

/** Creates a manual run, as `kubectl create` does. @returns its name */
export async function runNow({ platform, namespace }: ChaosEnvironment, project: string): Promise<string> {
  const now = new Date();
  const suffix = now.getTime().toString(36).slice(-8);
  const name = jobRunName(project, now, suffix);
  await platform.client.create<JobRun>(jobRunResource, {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "JobRun",
    metadata: { namespace, name },
    spec: { projectRef: { name: project }, trigger: "manual", scheduledAt: now.toISOString() },
  });
  return name;
}

/** Creates manual runs of every project repeatedly; they are rejected while another one is active. */
export async function keepRequesting(
  environment: ChaosEnvironment,
  projects: readonly string[],
  ms: number,
): Promise<void> {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    // The apiserver itself may be down.
    for (const project of projects) {
      await runNow(environment, project).catch(() => undefined);
    }
    await sleep(Math.min(2_000, Math.max(0, end - performance.now())));
  }
}

/** The same, until a condition is met. @throws Error when it is not within two minutes */
export async function requestUntil(
  environment: ChaosEnvironment,
  projects: readonly string[],
  what: string,
  isSo: () => Promise<boolean>,
): Promise<void> {
  await waitFor(what, 120_000, async () => {
    await keepRequesting(environment, projects, 2_000);
    return isSo();
  });
}

/** Requests the cancellation of every running run of a project. */
export async function cancelRunning(
  { platform, namespace }: ChaosEnvironment,
  project: string,
): Promise<void> {
  for (const run of await runsOf(platform, namespace, project)) {
    if (run.status?.phase !== "running" || run.spec.cancelRequestedAt) {
      continue;
    }
    const cancelRequestedAt = new Date().toISOString();
    await quietly(platform.client.patch(jobRunResource, refOf(run), { spec: { cancelRequestedAt } }));
  }
}

/** Backdates the charge of every charged run of a project, so that its JobRun is deleted now. */
export async function ageCharged({ platform, namespace }: ChaosEnvironment, project: string): Promise<void> {
  for (const run of await runsOf(platform, namespace, project)) {
    const charged = Date.parse(run.status?.chargedAt ?? "");
    if (!(Date.now() - charged < 300_000)) {
      continue;
    }
    const status = { chargedAt: new Date(charged - 600_000).toISOString() };
    await quietly(platform.client.patch(jobRunResource, refOf(run), { status }, { subresource: "status" }));
  }
}

/** Marks a node as not ready, and after a while as ready again. */
export async function silence(
  { platform: { client } }: ChaosEnvironment,
  node: string,
  ms: number,
): Promise<void> {
  const report = async (ready: "Unknown" | "True") => {
    const conditions = [
      { type: "Ready", status: ready, reason: "SetByTest", lastTransitionTime: new Date() },
    ];
    await client.patch(
      resources.nodes,
      { name: node },
      { status: { conditions } },
      { type: "strategic", subresource: "status" },
    );
  };
  await report("Unknown");
  await sleep(ms);
  await report("True");
}

async function runsOf(
  { client }: ChaosEnvironment["platform"],
  namespace: string,
  project: string,
): Promise<JobRun[]> {
  const runs = await client.listAll<JobRun>(jobRunResource, { namespace });
  return runs.filter(({ spec }) => spec.projectRef.name === project);
}

/** The operator changes the same objects, and some are deleted by now. */
async function quietly(write: Promise<unknown>): Promise<void> {
  await write.catch((error) => {
    if (!isConflict(error) && !isNotFound(error)) {
      throw error;
    }
  });
}
