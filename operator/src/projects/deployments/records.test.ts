import type { Deployment, Project } from "@slipway/crds";
import type { Deployment as DeploymentRow } from "@slipway/ledger";
import { beforeEach, describe, expect, test } from "vitest";
import { exampleProject } from "../../../../test/kit/operator/projects.ts";
import { DeploymentRecords } from "./records.ts";

let rows: DeploymentRow[];
let down: boolean;
let records: DeploymentRecords;

beforeEach(() => {
  rows = [];
  down = false;
  records = new DeploymentRecords(async (row) => {
    if (down) {
      throw new Error("connection refused");
    }
    rows.push(row);
  });
});

const begun: Deployment = {
  id: "d1",
  status: "in_progress",
  startedAt: "2026-01-01T00:00:00Z",
  settingsHash: "hash",
  updatedImage: true,
  image: { reference: "registry.example/app:1" },
  settings: { plan: "basic" },
};
const ended: Deployment = {
  ...begun,
  status: "failed",
  finishedAt: "2026-01-01T00:01:30Z",
  message: "Nothing answers.",
};

function project(...deployments: Deployment[]): Project {
  const made = exampleProject({ namespace: "slipway-org-alpha", name: "shop" });
  return { ...made, metadata: { ...made.metadata, uid: "uid" }, status: { deployments } };
}
const recorded = (of: Project) =>
  records.mark(of, of.status?.deployments ?? []).map(({ recorded: stage }) => stage);
const written = () => rows.map(({ id, status }) => `${id} ${status}`);

describe("DeploymentRecords", () => {
  test("records the start and the end, each once", async () => {
    expect(await records.record(project(begun))).toBe(true);
    expect(recorded(project(begun))).toEqual(["started"]);
    await records.record(project(begun));
    await records.record(project({ ...ended, recorded: "started" }));
    expect(recorded(project({ ...ended, recorded: "started" }))).toEqual(["finished"]);
    expect(written()).toEqual(["d1 in_progress", "d1 failed"]);
    expect(rows[1]).toEqual({
      id: "d1",
      organization_id: "alpha",
      project_id: "shop",
      project_uid: "uid",
      created_at: new Date("2026-01-01T00:00:00Z"),
      finished_at: new Date("2026-01-01T00:01:30Z"),
      status: "failed",
      updated_image: true,
      image: "registry.example/app:1",
      digest: null,
      settings_hash: "hash",
      message: "Nothing answers.",
    });
  });

  test("records nothing that the ledger has by the status", async () => {
    expect(await records.record(project({ ...begun, recorded: "started" }))).toBe(false);
    expect(await records.record(project({ ...ended, recorded: "finished" }))).toBe(false);
    expect(rows).toEqual([]);
  });

  test("records the oldest first, and continues where the ledger became unavailable", async () => {
    const newer = { ...begun, id: "d2" };
    down = true;
    await expect(records.record(project(newer, ended))).rejects.toThrow("connection refused");
    expect(recorded(project(newer, ended))).toEqual([undefined, undefined]);
    down = false;
    await records.record(project(newer, ended));
    expect(written()).toEqual(["d1 failed", "d2 in_progress"]);
  });

  test("does not confuse one end with another", async () => {
    await records.record(project(ended));
    const late: Deployment = { ...ended, status: "succeeded", recorded: "started" };
    expect(recorded(project(late))).toEqual(["started"]);
    await records.record(project(late));
    expect(written()).toEqual(["d1 failed", "d1 succeeded"]);
  });

  test("records the final state of a project in time, whether the ledger answers or not", async () => {
    await records.recordFinal(project({ ...ended, recorded: "started" }));
    expect(written()).toEqual(["d1 failed"]);
    down = true;
    await records.recordFinal(project(begun));
    const silent = new DeploymentRecords(() => new Promise(() => {}));
    const started = performance.now();
    await silent.recordFinal(project(begun), 20);
    expect(performance.now() - started).toBeLessThan(1_000);
  });

  test("knows nothing of a namesake, or of a deleted project", async () => {
    await records.record(project(begun));
    const namesake = project(begun);
    namesake.metadata.uid = "other";
    expect(recorded(namesake)).toEqual([undefined]);
    records.forget({ namespace: "slipway-org-alpha", name: "shop" });
    expect(recorded(project(begun))).toEqual([undefined]);
  });
});
