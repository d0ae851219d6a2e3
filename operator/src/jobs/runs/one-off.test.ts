import { KubeError, resources } from "@slipway/controller-runtime";
import { type JobRun, jobRunName, type Project } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { Bench, PROJECT } from "../../../../test/kit/operator/jobrun-bench.ts";
import type { NewObject } from "../../../../test/simulator/apiserver.ts";
import type { Stored } from "../../../../test/simulator/objects.ts";
import type { Serving } from "../../applications/serving.ts";
import { jobRunResource, projectResource } from "../../resources.ts";
import type { Job } from "./cluster.ts";
import { type OneOffView, oneOffRefusal } from "./one-off.ts";

const scheduledAt = "2026-02-02T03:00:12.345Z";

function view(change: Partial<OneOffView> & { spec?: object; metadata?: object } = {}): OneOffView {
  const { spec = {}, metadata = {}, ...rest } = change;
  const name = jobRunName("shop", new Date(scheduledAt), "now");
  return {
    run: {
      metadata: { name, namespace: "slipway-org-o", creationTimestamp: scheduledAt },
      spec: { projectRef: { name: "shop" }, trigger: "manual", scheduledAt, command: ["ls"] },
    } as JobRun,
    project: {
      metadata: { name: "shop", namespace: "slipway-org-o", uid: "u", ...metadata },
      spec: { type: "http", ...spec },
      status: { conditions: [{ type: "Accepted", status: "True" }] },
    } as Project,
    now: new Date(Date.parse(scheduledAt) + 1_000),
    windowMs: 120_000,
    isProject: () => false,
    serving: { plan: { free: false } } as Serving,
    active: { project: 0, organization: 0 },
    ...rest,
  };
}

const free = { plan: { free: true } } as Serving;

describe("a one-off run", () => {
  it.each<[string, Parameters<typeof view>[0], string | undefined]>([
    ["of an application that serves", {}, undefined],
    ["of a worker", { spec: { type: "worker" } }, undefined],
    ["of a job", { spec: { type: "job" } }, "NotAccepted"],
    ["of a database", { spec: { type: "postgresql" } }, "NotAccepted"],
    ["of no project", { project: undefined }, "ProjectGone"],
    ["of a project that is deleted", { metadata: { deletionTimestamp: scheduledAt } }, "ProjectGone"],
    ["of a project that is paused", { spec: { paused: true } }, "Paused"],
    ["of a project that never served", { serving: "none" }, "NotDeployed"],
    ["of a project whose plan is gone", { serving: "incomplete" }, "NotAccepted"],
    ["beside four", { active: { project: 4, organization: 19 } }, undefined],
    ["beside five", { active: { project: 5, organization: 5 } }, "TooManyRuns"],
    ["beside twenty of others", { active: { project: 0, organization: 20 } }, "TooManyRuns"],
    ["on a free plan", { serving: free }, undefined],
    ["beside one on a free plan", { serving: free, active: { project: 1, organization: 1 } }, "TooManyRuns"],
    ["that was decided late", { now: new Date(Date.parse(scheduledAt) + 120_000) }, "Late"],
  ])("%s is decided: %s", (_, change, reason) => {
    expect(oneOffRefusal(view(change))?.reason).toBe(reason);
  });
});

function request(bench: Bench, suffix = "a1", project = PROJECT): string {
  const now = new Date(bench.timeline.now);
  const name = jobRunName(project, now, suffix);
  bench.api.create(jobRunResource, {
    metadata: { name, namespace: bench.ref().namespace },
    spec: {
      projectRef: { name: project },
      trigger: "manual",
      scheduledAt: now.toISOString(),
      command: ["task"],
    },
  } as unknown as NewObject);
  return name;
}

/** Uids of Jobs that were ever unsuspended. */
function startedJobs(bench: Bench): Set<string> {
  const started = new Set<string>();
  bench.api.onChange(({ resource, object }) => {
    if (resource === resources.jobs && (object as unknown as Job).spec?.suspend === false) {
      started.add(object.metadata.uid ?? "");
    }
  });
  return started;
}

/** Reconciles until nothing changes, over writes that fail. */
async function persist(bench: Bench): Promise<void> {
  for (let tries = 0; tries < 10; tries += 1) {
    try {
      await bench.reconcileUntilStable();
      return;
    } catch {
      await bench.pass(1_000);
    }
  }
  throw new Error("it never becomes stable");
}

async function toItsEnd(bench: Bench, name: string): Promise<void> {
  await persist(bench);
  const pod = bench.makePod(name);
  bench.starts(pod);
  await persist(bench);
  await bench.pass(70_000);
  bench.ends(pod, 0, "12:00:30");
  await persist(bench);
}

describe("of a one-off run", () => {
  it.each([
    [[]],
    // What was written is known by the answer alone, and by reading it after a conflict.
    [["jobruns"]],
  ])(
    "every write, or its answer, may be lost: its Job starts once, and it is charged once; behind are %j",
    async (behind) => {
      const quiet = new Bench({ application: true });
      await toItsEnd(quiet, request(quiet));
      const { length } = quiet.writes;
      expect(length).toBeGreaterThan(8);
      for (let lost = 0; lost < length; lost += 1) {
        for (const hook of ["beforeWrite", "afterWrite"] as const) {
          const bench = new Bench({ application: true });
          const started = startedJobs(bench);
          let count = -1;
          bench[hook] = () => {
            count += 1;
            if (count === lost) {
              throw new Error("lost");
            }
          };
          const name = request(bench);
          for (const plural of behind) {
            bench.staleWatches.add(plural);
          }
          await toItsEnd(bench, name);
          const about = `${hook} ${lost}`;
          expect([about, started.size]).toEqual([about, 1]);
          expect([
            about,
            [...bench.ledger.rows.values()].map(({ billed_minutes }) => billed_minutes),
          ]).toEqual([about, [2]]);
          expect(bench.run(name)?.status).toMatchObject({ phase: "succeeded", plan: "basic" });
          expect(bench.job(name)).toBeUndefined();
        }
      }
    },
  );

  it("a process whose caches are old starts no second Job", async () => {
    const bench = new Bench({ application: true });
    const started = startedJobs(bench);
    const name = request(bench);
    await bench.reconcileUntilStable();
    const job = bench.job(name);
    const live = bench.run(name) as JobRun;
    // Another process has brought it to its end, and this one has seen nothing of it.
    for (const plural of ["jobruns", "jobs", "pods"]) {
      bench.staleWatches.add(plural);
    }
    bench.deps.stores.runs.remove(live);
    bench.deps.stores.runs.upsert({ ...live, status: undefined });
    expect(bench.deps.stores.runs.get(bench.ref().namespace, name)).not.toHaveProperty("status.jobUid");
    bench.deps.stores.jobs.remove(job as Job);
    const conditions = [{ type: "Finished", status: "True", reason: "Succeeded", message: "" }];
    bench.api.patch(
      jobRunResource,
      bench.ref(name),
      { status: { phase: "succeeded", conditions } },
      { subresource: "status" },
    );
    bench.api.patch(resources.jobs, bench.ref(name), { metadata: { finalizers: [] } });
    bench.api.delete(resources.jobs, bench.ref(name), {});
    await bench.once().catch(() => undefined);
    await bench.once().catch(() => undefined);
    const again = bench.api.get<Stored>(resources.jobs, bench.ref(name)) as unknown as Job | undefined;
    expect(again?.spec?.suspend ?? true).toBe(true);
    expect(started.size).toBe(1);
  });

  it("the Job that is recorded alone may start: another one of its name is deleted, and the run never started", async () => {
    const bench = new Bench({ application: true });
    const started = startedJobs(bench);
    const name = request(bench);
    // It is killed after it has recorded the Job.
    let statusWrites = 0;
    bench.afterWrite = (write) => {
      statusWrites += write === "patch jobruns" ? 1 : 0;
      if (statusWrites === 2) {
        throw new Error("killed");
      }
    };
    await bench.once().catch(() => undefined);
    bench.afterWrite = () => {};
    expect(bench.run(name)?.status?.jobUid).toBeDefined();
    expect(started.size).toBe(0);
    bench.api.delete(resources.jobs, bench.ref(name), {});
    bench.api.create(resources.jobs, {
      metadata: { name, namespace: bench.ref().namespace, labels: { "slipway.dev/one-off-run": PROJECT } },
      spec: { suspend: true },
    } as unknown as NewObject);
    await persist(bench);
    await bench.pass(10_000);
    await persist(bench);
    expect(started.size).toBe(0);
    expect(bench.condition(name, "Finished")).toBe("False/NeverStarted");
    expect(bench.job(name)).toBeUndefined();
    expect(bench.ledger.rows.size).toBe(0);
  });

  it("a Job of a version that does not serve any more is replaced, and that of somebody else is not started", async () => {
    const bench = new Bench({ application: true });
    const started = startedJobs(bench);
    const name = request(bench);
    // It is killed after it has created the Job.
    bench.afterWrite = (write) => {
      if (write === "create jobs") {
        throw new Error("killed");
      }
    };
    bench.staleWatches.add("jobs");
    await bench.once().catch(() => undefined);
    bench.afterWrite = () => {};
    bench.staleWatches.clear();
    const before = bench.job(name)?.metadata.uid;
    expect(before).toBeDefined();
    bench.serve({ id: "d2", settingsHash: "h2" });
    await persist(bench);
    await bench.pass(2_000);
    await persist(bench);
    expect(bench.run(name)?.status).toMatchObject({ deployment: "d2" });
    expect(started).toEqual(new Set([bench.job(name)?.metadata.uid]));
    expect(started).not.toContain(before);

    const other = jobRunName(PROJECT, new Date(bench.timeline.now), "zz");
    bench.api.create(resources.jobs, {
      metadata: { name: other, namespace: bench.ref().namespace },
      spec: { suspend: true },
    } as unknown as NewObject);
    request(bench, "zz");
    await bench.once();
    await bench.pass(121_000);
    await persist(bench);
    expect(bench.condition(other, "Admitted")).toBe("False/Late");
    expect(started.size).toBe(1);
  });

  it("the Job of an admission whose record is not known yet is kept, though another version serves by now", async () => {
    const bench = new Bench({ application: true });
    const name = request(bench);
    bench.staleWatches.add("jobruns");
    let statusWrites = 0;
    bench.afterWrite = (write) => {
      statusWrites += write === "patch jobruns" ? 1 : 0;
      if (statusWrites === 2) {
        throw new Error("lost");
      }
    };
    await bench.once().catch(() => undefined);
    bench.afterWrite = () => {};
    const uid = bench.job(name)?.metadata.uid;
    expect(uid).toBeDefined();
    expect(bench.run(name)?.status?.jobUid).toBe(uid);
    expect(bench.deps.stores.runs.get(bench.ref().namespace, name)).not.toHaveProperty("status.jobUid");
    bench.serve({ id: "d2", settingsHash: "h2" });
    await toItsEnd(bench, name);
    expect(bench.run(name)?.status).toMatchObject({ phase: "succeeded", deployment: "d1", jobUid: uid });
  });

  it("twenty of an organization are active, though runs of several projects are decided concurrently", async () => {
    const bench = new Bench({ application: true });
    const admittedAt = new Date(bench.timeline.now).toISOString();
    for (let count = 0; count < 19; count += 1) {
      const name = request(bench, "a1", `pother${count}`);
      bench.api.patch(jobRunResource, bench.ref(name), { status: { admittedAt } }, { subresource: "status" });
    }
    const { metadata, spec, status } = bench.api.get<Stored>(
      projectResource,
      bench.ref(),
    ) as unknown as Project;
    bench.api.create(projectResource, {
      metadata: { name: "pbeside", namespace: metadata.namespace },
      spec,
    } as unknown as NewObject);
    bench.api.patch(projectResource, bench.ref("pbeside"), { status }, { subresource: "status" });
    const names = [request(bench), request(bench, "a1", "pbeside")];
    await Promise.all([bench.once(), bench.once("pbeside")]);
    expect(names.map((name) => bench.condition(name, "Admitted")).sort()).toEqual([
      "False/TooManyRuns",
      "True/Admitted",
    ]);
  });

  it("on a plan that costs nothing has no price, whatever its prices are", async () => {
    const bench = new Bench({ application: true });
    bench.serve({ plan: "free" });
    const name = request(bench);
    await toItsEnd(bench, name);
    expect(bench.run(name)?.status).toMatchObject({ plan: "free", pricePerMinute: "0", amount: "0" });
  });

  it.each([
    ["exceeded quota: slipway-quota", 403, "Forbidden"],
    ["spec.template.spec.containers[0].resources.requests: Invalid value", 422, "Invalid"],
  ])("whose Job the cluster refuses is refused: %s", async (message, status, reason) => {
    const bench = new Bench({ application: true });
    bench.beforeWrite = (write) => {
      if (write === "create jobs") {
        throw new KubeError({ status, reason, message });
      }
    };
    const name = request(bench);
    await bench.reconcileUntilStable();
    expect(bench.condition(name, "Admitted")).toBe("False/NotAccepted");
    expect(bench.job(name)).toBeUndefined();
  });

  it("waits where its Job may not be created yet, or nobody answers", async () => {
    const bench = new Bench({ application: true });
    let refusals = 2;
    bench.beforeWrite = (write) => {
      if (write === "create jobs" && refusals > 0) {
        refusals -= 1;
        throw refusals === 0
          ? new KubeError({ status: 503, reason: "ServiceUnavailable", message: "try again" })
          : new KubeError({ status: 403, reason: "Forbidden", message: "cannot create resource" });
      }
    };
    const name = request(bench);
    await toItsEnd(bench, name);
    expect(bench.run(name)?.status).toMatchObject({ phase: "succeeded" });
  });

  it.each([
    ["twenty", "basic", 20],
    ["five, on a plan that costs nothing,", "free", 5],
  ])(
    "the newest %s are kept for a day, others for five minutes, and none beyond its project",
    async (_, plan, most) => {
      const bench = new Bench({ application: true });
      bench.serve({ plan });
      const names: string[] = [];
      for (let count = 0; count <= most; count += 1) {
        const name = request(bench, `a${count}`);
        names.push(name);
        await persist(bench);
        const pod = bench.makePod(name);
        bench.patchPodStatus(
          pod,
          {
            terminated: { exitCode: 3, startedAt: bench.day("12:00:30"), finishedAt: bench.day("12:00:31") },
          },
          "Failed",
        );
        await persist(bench);
        await bench.pass(1_000);
      }
      const kept = () => names.filter((name) => bench.run(name) !== undefined).length;
      expect(kept()).toBe(most + 1);
      await bench.pass(6 * 60_000);
      await persist(bench);
      expect(kept()).toBe(most);
      expect(bench.run(names[0] ?? "")).toBeUndefined();
      expect(bench.ledger.rows.get(names[1] ?? "")?.metrics).toMatchObject({ exitCode: 3 });
      await bench.pass(24 * 3_600_000);
      await persist(bench);
      expect(kept()).toBe(0);
      const last = request(bench, "b1");
      await toItsEnd(bench, last);
      expect(bench.run(last)?.status?.phase).toBe("succeeded");
      bench.api.patch(projectResource, bench.ref(), { metadata: { finalizers: ["test"] } });
      bench.api.delete(projectResource, bench.ref(), {});
      await persist(bench);
      expect(bench.run(last)).toBeUndefined();
    },
  );
});
