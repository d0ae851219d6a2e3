import { readFileSync } from "node:fs";
import { type Deployment, type Project, parseCatalog } from "@slipway/crds";
import { expect, test } from "vitest";
import { exampleProject, exampleWorker } from "../../../../test/kit/operator/projects.ts";
import { settingsOf } from "../../projects/deployments/deployments.ts";
import { acceptHttp } from "../kind.ts";
import { withSettingsOf } from "../recreate.ts";
import { type HttpPlatform, toHttpApp } from "../view.ts";
import { deployment, settingsHash } from "./deployment.ts";

const catalog = parseCatalog(
  readFileSync(new URL("../../../../charts/slipway/files/catalog.yaml", import.meta.url), "utf8"),
);
const platform: HttpPlatform = {
  domainZone: "apps.test",
  reservedHostnames: [],
  rolloutDeadlineSeconds: 300,
  ingress: { className: "traefik", namespace: "ingress", annotations: {}, allowList: "traefik" },
};
const ref = { namespace: "slipway-org-alpha", name: "p1" };
const appOf = (project: Project) => {
  const plan = acceptHttp(project, catalog, platform.ingress);
  return toHttpApp(project, { organizationId: "alpha", plan }, { catalog, platform, hosts: {} });
};
const hash = (project: Project) => settingsHash(appOf(project));
const readiness = { command: ["cat", "/tmp/ready"] };

// Shows: docs/applications.md#workers: another readiness command is a deployment, and a rollback restores it
test("another readiness command is another deployment, and an earlier one's settings restore it", () => {
  const before = exampleWorker(ref, { readiness });
  const now = exampleWorker(ref, { readiness: { command: ["true"] } });
  expect(new Set([before, now, exampleWorker(ref)].map(hash)).size).toBe(3);
  const earlier: Deployment = {
    id: "d1",
    status: "succeeded",
    startedAt: "2026-01-01T00:00:00Z",
    settingsHash: hash(before),
    updatedImage: true,
    image: { reference: "registry.example/team/worker:1.0.0" },
    settings: settingsOf(before),
  };
  expect(hash(withSettingsOf(now, earlier))).toBe(hash(before));
  expect(hash(withSettingsOf(now, { ...earlier, settings: settingsOf(exampleWorker(ref)) }))).toBe(
    hash(exampleWorker(ref)),
  );
});

// Shows: docs/applications.md#command: another command is a deployment, and a rollback restores it
// Shows: docs/applications.md#command: its words stay as they are: neither `$` nor `$(NAME)` means anything
test.each([
  ["worker", exampleWorker],
  ["HTTP project", exampleProject],
])(
  "another command of a %s is another deployment, with its words as they are, and an earlier one's settings restore it",
  (_, example) => {
    const own = example(ref);
    const before = example(ref, { command: ["node", "worker.js", "$(HOME)", "$5"] });
    const now = example(ref, { command: ["node", "other.js"] });
    const containerOf = (project: Project) =>
      (
        deployment(appOf(project)).spec as {
          template: { spec: { containers: Record<string, unknown>[] } };
        }
      ).template.spec.containers[0];
    expect(containerOf(before)?.command).toEqual(["node", "worker.js", "$$(HOME)", "$$5"]);
    expect(containerOf(own)).not.toHaveProperty("command");
    expect(new Set([own, before, now].map(hash)).size).toBe(3);
    const deploymentOf = (project: Project): Deployment => ({
      id: "d1",
      status: "succeeded",
      startedAt: "2026-01-01T00:00:00Z",
      settingsHash: hash(project),
      updatedImage: true,
      image: { reference: "registry.example/team/worker:1.0.0" },
      settings: settingsOf(project),
    });
    expect(hash(withSettingsOf(now, deploymentOf(before)))).toBe(hash(before));
    expect(hash(withSettingsOf(now, deploymentOf(own)))).toBe(hash(own));
  },
);

test("the number of instances, a pause and autoscaling are none", () => {
  const scaled = { plan: "premium", autoscaling: { enabled: true, maxInstances: 3 } };
  const changes: Partial<Project["spec"]>[] = [{ instances: 2 }, { paused: true }];
  expect(new Set([{}, ...changes].map((spec) => hash(exampleWorker(ref, spec)))).size).toBe(1);
  expect(hash(exampleWorker(ref, scaled))).toBe(hash(exampleWorker(ref, { plan: "premium" })));
});

// Shows: docs/applications.md#workers: without a command an instance is ready that has run for 5 seconds
test("a first version has to run for a while only where nothing else shows that it is ready", () => {
  const waits = (project: Project) =>
    (deployment(appOf(project)).spec as { minReadySeconds: number }).minReadySeconds;
  expect(waits(exampleWorker(ref))).toBe(5);
  expect(waits(exampleWorker(ref, { readiness }))).toBe(0);
  expect(waits(exampleProject(ref))).toBe(0);
});
