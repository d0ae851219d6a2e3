import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { KubernetesObject } from "@kubernetes/client-node";
import { afterAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { apiClient, uniqueName } from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { waitAsDocumented } from "./support/documented.ts";
import { eventually } from "./support/eventually.ts";
import { Job } from "./support/jobs.ts";
import { namespaceOf, stack } from "./support/stack.ts";
import { type StackObserver, startStackObserver } from "./support/stack-observer.ts";

/** Jobs that are created without the API. */

interface ProjectObject extends KubernetesObject {
  spec: Record<string, unknown> & { image: { url: string }; job: { cron: string } };
  status?: { conditions?: Condition[]; phase?: string };
}

interface JobRunObject extends KubernetesObject {
  spec: { projectRef: { name: string }; trigger: string; scheduledAt: string; cancelRequestedAt?: string };
  status?: { conditions?: Condition[]; phase?: string };
}

interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
}

const namespace = namespaceOf(stack.organization);
const example = async <T>(file: string): Promise<T> =>
  parse(await readFile(join(import.meta.dirname, "../../docs/resources/examples", file), "utf8")) as T;

/** The documented job, with an image that the stack's nodes can pull. */
async function documentedJob(name: string): Promise<ProjectObject> {
  const project = await example<ProjectObject>("project-job.yaml");
  project.metadata = { ...project.metadata, name, namespace };
  project.spec.image = { ...project.spec.image, url: stack.imageJob };
  return project;
}

/** The documented run, of this job and now. */
async function documentedRun(project: string, suffix: string): Promise<JobRunObject> {
  const run = await example<JobRunObject>("jobrun.yaml");
  const scheduledAt = new Date();
  run.metadata = { name: `${project}-${Math.floor(Number(scheduledAt) / 60_000)}-${suffix}`, namespace };
  run.spec = { ...run.spec, projectRef: { name: project }, scheduledAt: scheduledAt.toISOString() };
  return run;
}

const apply = (object: KubernetesObject): Promise<KubernetesObject> =>
  cluster.objects.patch(object, undefined, undefined, "kubectl", true, "application/apply-patch+yaml");
const read = async <T>(object: KubernetesObject): Promise<T> =>
  (await cluster.objects.read(object as never)) as unknown as T;
const condition = async (object: KubernetesObject, type: string): Promise<Condition | undefined> =>
  (await read<ProjectObject>(object)).status?.conditions?.find((one) => one.type === type);

let observer: StackObserver | undefined;
afterAll(async () => {
  await observer?.stop();
});

// Shows: docs/jobs.md#two-operators-and-kubectl: `kubectl apply` of a job, `kubectl create` of a run
test("the documented job and a run of it by hand work by kubectl alone, and deletion waits for the run", async () => {
  observer = await startStackObserver();
  const name = uniqueName("nightly");
  const project = await documentedJob(name);
  await apply(project);
  await eventually(async () => expect(await condition(project, "Ready")).toMatchObject({ status: "True" }));
  const cronJob = { apiVersion: "batch/v1", kind: "CronJob", metadata: { name, namespace } };
  expect((await read<{ spec: object }>(cronJob)).spec).toMatchObject({
    schedule: "0 3 * * MON-FRI",
    timeZone: "Etc/UTC",
    suspend: false,
  });

  const run = await documentedRun(name, "now");
  await cluster.objects.create(run);
  await waitAsDocumented("jobrun", run.metadata?.name ?? "");
  await eventually(async () => expect(await condition(run, "Charged")).toMatchObject({ status: "True" }));
  expect((await read<JobRunObject>(run)).status).toMatchObject({ phase: "succeeded", billedMinutes: 1 });
  const job = new Job(apiClient(), name);
  const id = run.metadata?.name ?? "";
  expect(await job.runs()).toMatchObject([{ id, trigger: "manual", status: "succeeded" }]);
  expect((await job.log(id)).logs).toMatch(/the report is done\n$/);

  // A second one while a third is active; and a deletion meanwhile.
  project.spec.job = { ...project.spec.job, args: ["echo up; sleep 600"] } as ProjectObject["spec"]["job"];
  await apply(project);
  await eventually(async () => {
    const { spec } = await read<{ spec: { jobTemplate: unknown } }>(cronJob);
    expect(JSON.stringify(spec.jobTemplate)).toContain("sleep 600");
  });
  const active = await documentedRun(name, "active");
  await cluster.objects.create(active);
  await eventually(async () => expect((await read<JobRunObject>(active)).status?.phase).toBe("running"));
  const refused = await documentedRun(name, "refused");
  await cluster.objects.create(refused);
  await eventually(async () =>
    expect(await condition(refused, "Admitted")).toMatchObject({ status: "False", reason: "Overlap" }),
  );

  await cluster.objects.delete(project);
  await eventually(async () =>
    expect(await condition(project, "Terminating")).toMatchObject({
      status: "True",
      reason: "JobRunsPending",
    }),
  );
  expect((await read<JobRunObject>(active)).status?.phase).toBe("running");
  // Cancelling it as `kubectl patch` does; then everything goes, and the ledger keeps both runs.
  await cluster.objects.patch(
    { ...active, spec: { cancelRequestedAt: new Date().toISOString() } } as KubernetesObject,
    undefined,
    undefined,
    undefined,
    undefined,
    "application/merge-patch+json",
  );
  for (const object of [project, active, cronJob]) {
    await eventually(() => expect(read(object)).rejects.toThrow(/404/));
  }
  const { runs, charges, pods } = (await observer.records([name])) ?? {};
  expect(runs.map(({ status }) => status).toSorted()).toEqual(["cancelled", "succeeded"]);
  expect(charges).toHaveLength(2);
  expect(pods.map(({ run: own }) => own).toSorted()).toEqual(runs.map((one) => one.id).toSorted());
}, 240_000);

describe("the cluster itself refuses", () => {
  // Shows: docs/jobs.md#two-operators-and-kubectl: the cluster itself rejects what is no schedule of
  test.each([
    ["four fields", "* * * *"],
    ["six fields", "0 * * * * *"],
    ["a macro", "@hourly"],
    ["a time zone", "TZ=America/Sao_Paulo 0 3 * * *"],
    ["a minute that is none", "60 * * * *"],
    ["an hour that is none", "0 24 * * *"],
    ["a day that is none", "0 0 0 * *"],
    ["a month that is none", "0 0 1 13 *"],
    ["a weekday that is none", "0 0 * * 7"],
    ["a range that descends", "30-10 * * * *"],
    ["a step of none", "*/0 * * * *"],
    ["H", "H * * * *"],
    ["L", "0 0 L * *"],
    ["#", "0 0 * * MON#1"],
    ["?", "0 0 ? * *"],
    ["a space too much", "0  3 * * *"],
  ])("a schedule with %s", async (_, cron) => {
    const project = await documentedJob(uniqueName("refused"));
    project.spec.job = { ...project.spec.job, cron };
    await expect(cluster.objects.create(project)).rejects.toThrow(/spec\.job\.cron/);
  });

  test("a job that is not paid by the minute, and a change of what a run was", async () => {
    const project = await documentedJob(uniqueName("refused"));
    project.spec.paymentMode = "hourly";
    await expect(cluster.objects.create(project)).rejects.toThrow(/paymentMode|per_minute/);
    const run = await documentedRun("nobodys-job", "now");
    run.spec.trigger = "whim";
    await expect(cluster.objects.create(run)).rejects.toThrow(/spec\.trigger/);
  });
});
