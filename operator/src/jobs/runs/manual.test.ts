import { type JobRun, jobRunName, type Project } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { Bench, PROJECT } from "../../../../test/kit/operator/jobrun-bench.ts";
import type { NewObject } from "../../../../test/simulator/apiserver.ts";
import { jobRunResource } from "../../resources.ts";
import { type ManualView, refusalOf } from "./manual.ts";

const scheduledAt = "2026-02-02T03:00:12.345Z";
const minute = Math.floor(Date.parse(scheduledAt) / 60_000);

function view(change: { name?: string; others?: string[]; project?: Partial<Project> } = {}): ManualView {
  const run = {
    metadata: {
      name: change.name ?? `nightly-${minute}-now`,
      namespace: "slipway-org-o",
      creationTimestamp: scheduledAt,
    },
    spec: { projectRef: { name: "nightly" }, trigger: "manual", scheduledAt },
  } as JobRun;
  const project = {
    metadata: { name: "nightly", namespace: "slipway-org-o", uid: "u" },
    spec: { type: "job", job: { cron: "* * * * *" } },
    status: { conditions: [{ type: "Accepted", status: "True" }] },
    ...change.project,
  } as Project;
  const now = new Date(Date.parse(scheduledAt) + 1_000);
  return {
    run,
    project,
    now,
    windowMs: 120_000,
    occupied: false,
    priced: true,
    isProject: (id) => (change.others ?? []).includes(id),
  };
}

describe("a manual run", () => {
  it("is accepted under a name that contains its minute", () => {
    expect(refusalOf(view())).toBeUndefined();
  });

  it.each([
    "nightly-now",
    `nightly-${minute}`,
    `nightly-${minute + 1}-now`,
    `nightly-${minute}-elevenchars`,
    `nightly-${minute}-two-parts`,
    `nightly-${minute}-`,
    `other-${minute}-now`,
  ])("is refused under the name %s, which the ledger could not keep", (name) => {
    expect(refusalOf(view({ name }))).toMatchObject({
      reason: "NotAccepted",
      message: expect.stringContaining(`nightly-${minute}-`),
    });
  });

  it("is refused under the name that another project's scheduled run may have", () => {
    const duplicate = view({ name: `nightly-${minute}-29500000`, others: [`nightly-${minute}`] });
    expect(refusalOf(duplicate)).toMatchObject({
      reason: "NotAccepted",
      message: expect.stringContaining("scheduled run"),
    });
  });

  it("is refused when its request is old", () => {
    const old = view();
    old.run.metadata.creationTimestamp = new Date(Date.parse(scheduledAt) + 700_000).toISOString();
    expect(refusalOf({ ...old, now: new Date(Date.parse(scheduledAt) + 700_000) })).toMatchObject({
      reason: "NotAccepted",
      message: expect.stringContaining("scheduledAt"),
    });
  });

  it("is refused while another run is active", () => {
    const project = {
      status: { conditions: [{ type: "Accepted", status: "True" }], job: { activeRun: "x" } },
    } as Project;
    expect(refusalOf(view({ project }))).toMatchObject({ reason: "Overlap" });
    expect(refusalOf({ ...view(), occupied: true })).toMatchObject({ reason: "Overlap" });
  });
});

it("with the name of an occurrence is refused, and the occurrence that has no run for it is missed", async () => {
  const bench = new Bench();
  await bench.reconcileUntilStable();
  const scheduledAt = bench.day("12:01:00");
  const name = jobRunName(PROJECT, new Date(scheduledAt));
  bench.api.create(jobRunResource, {
    metadata: { name, namespace: bench.ref().namespace },
    spec: { projectRef: { name: PROJECT }, trigger: "manual", scheduledAt },
  } as NewObject);
  await bench.reconcileUntilStable();
  expect(bench.condition(name, "Admitted")).toBe("False/NotAccepted");
  await bench.passTo("12:01:00");
  bench.makeJob("12:01:00");
  await bench.reconcileUntilStable();
  expect([bench.missed(), bench.state.activeRun, bench.job(name)]).toEqual([
    "NotCreated 1",
    undefined,
    undefined,
  ]);
  await bench.reconcileUntilStable();
  expect(bench.missed()).toBe("NotCreated 1");
});
