import { expect, test } from "vitest";
import { newestBackups, summaryOf } from "./summary.ts";

const namespace = "slipway-org-a";
const backup = (name: string, project: string, requestedAt: string) => ({
  kind: "Backup",
  metadata: { name, namespace },
  spec: { projectRef: { name: project }, requestedAt },
});
const project = (name: string, spec: object, status = {}) => ({
  kind: "Project",
  metadata: { name, namespace },
  spec,
  status,
});

test("the newest backup of each database", () => {
  const backups = newestBackups();
  backups.add(backup("a-b2", "a", "2026-01-02T00:00:00Z"));
  backups.add(backup("a-b1", "a", "2026-01-01T00:00:00Z"));
  backups.add(backup("b-b1", "b", "2026-01-01T00:00:00Z"));
  backups.add({ ...backup("c-b1", "c", "2026-01-01T00:00:00Z"), kind: "Build" });
  expect([...backups.names()]).toEqual([
    [`${namespace}/a`, "a-b2"],
    [`${namespace}/b`, "b-b1"],
  ]);
});

test("what comes back, and what comes back empty", () => {
  const summary = summaryOf();
  for (const object of [
    project("shop", { type: "http", storage: { persistent: false } }),
    project("wiki", { type: "http", storage: { persistent: true } }),
    project("site", { type: "http" }, { build: { publishedBuild: "site-1" } }),
    project("mailer", { type: "worker", storage: { persistent: true } }),
    project("nightly", { type: "job" }),
    project("data", { type: "postgresql" }),
    project("cache", { type: "valkey" }),
  ]) {
    summary.add(object);
  }
  expect(summary.result(new Map([[`${namespace}/data`, "data-b1"]]))).toEqual({
    objects: { Project: 7 },
    databases: ["data"],
    emptyDatabases: ["cache"],
    emptyVolumes: ["wiki", "mailer"],
    built: ["site"],
  });
});
