import type { Catalog, Deployment, Project } from "@slipway/crds";
import { expect, test } from "vitest";
import { exampleProject, exampleWorker } from "../../../test/kit/operator/projects.ts";
import { type Serving, servingVersion } from "./serving.ts";

const namespace = "slipway-org-alpha";
const size = { cpu: "1", memory: "128Mi" };
const plan = (name: string) => ({ plan: name, resources: { requests: size, limits: size } });
const catalog = {
  httpPlans: [plan("basic"), plan("premium")],
  storagePlans: [],
} as unknown as Pick<Catalog, "httpPlans" | "storagePlans">;

const image = (tag: string) => ({ url: `registry.example/team/app:${tag}`, isPublic: true });
const digest = `sha256:${"a".repeat(64)}`;

function deployment(
  id: string,
  status: Deployment["status"],
  settings: Partial<Deployment["settings"]>,
): Deployment {
  return {
    id,
    status,
    startedAt: "2026-01-01T00:00:00Z",
    settingsHash: id,
    updatedImage: true,
    image: { reference: "registry.example/team/app", digest },
    settings: { image: image("1"), port: 3000, plan: "basic", ...settings },
  };
}

const withStatus = (project: Project, status: Project["status"]): Project => ({ ...project, status });
const shop = (status: Project["status"]) =>
  withStatus(exampleProject({ namespace, name: "shop" }, { image: image("9"), plan: "premium" }), status);
const serving = (project: Project) => servingVersion(project, { catalog }) as Serving;

test("the newest deployment that has succeeded serves, with its own image by digest, port, plan and variables", () => {
  const envsFrom = [{ name: "shop-env-1" }];
  const found = serving(
    shop({
      deployments: [
        deployment("d3", "in_progress", { image: image("3"), plan: "premium" }),
        deployment("d2", "failed", { image: image("2") }),
        deployment("d1", "succeeded", { envsFrom }),
        deployment("d0", "succeeded", { image: image("0") }),
      ],
    }),
  );
  expect(found.deployment.id).toBe("d1");
  expect(found.plan.plan).toBe("basic");
  expect(found.app).toMatchObject({
    image: `registry.example/team/app:1@${digest}`,
    port: 3000,
    envSecrets: ["shop-env-1"],
  });
});

test("references have the values that were resolved last", () => {
  const source = {
    name: "shop-env-1",
    references: [{ variable: "URL", reference: "${".concat("project:db.host}") }],
  };
  const deployments = [deployment("d1", "succeeded", { envsFrom: [source] as never })];
  const references = [{ secret: "shop-env-1", resolved: "shop-refs-2" }];
  expect(serving(shop({ deployments, references })).app.envSecrets).toEqual(["shop-env-1", "shop-refs-2"]);
  expect(servingVersion(shop({ deployments }), { catalog })).toBe("incomplete");
});

test("a worker has no port", () => {
  const worker = exampleWorker({ namespace, name: "mails" });
  const { app } = serving(withStatus(worker, { deployments: [deployment("d1", "succeeded", {})] }));
  expect(app).not.toHaveProperty("port");
});

test("what never served, or whose plan is not in the catalog, has no version", () => {
  expect(servingVersion(shop(undefined), { catalog })).toBe("none");
  const failed = [deployment("d1", "failed", {}), deployment("d0", "superseded", {})];
  expect(servingVersion(shop({ deployments: failed }), { catalog })).toBe("none");
  const old = [deployment("d1", "succeeded", { plan: "retired" })];
  expect(servingVersion(shop({ deployments: old }), { catalog })).toBe("incomplete");
});
