import { readFileSync } from "node:fs";
import { KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import {
  annotations,
  type Deployment,
  labels,
  MANAGED_BY,
  type Project,
  type ProjectSpec,
  parseCatalog,
} from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { exampleSpec, workerSpec } from "../../../test/kit/api-server/harness.ts";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { builtRollback, keepSecrets, permissionsOf, withDeployment } from "./rollback.ts";

const catalog = parseCatalog(
  readFileSync(new URL("../../../charts/slipway/files/catalog.yaml", import.meta.url), "utf8"),
);
const NOW = "2026-03-01T12:00:00.000Z";
const digest = `sha256:${"a".repeat(64)}`;
const other = `sha256:${"b".repeat(64)}`;

const deployment = (settings: Partial<Deployment["settings"]>, deployed?: string): Deployment => ({
  id: "d1",
  status: "succeeded",
  startedAt: "2026-02-01T00:00:00Z",
  settingsHash: "h",
  updatedImage: true,
  image: {
    reference: "registry.example.com/shop:1",
    ...(deployed === undefined ? {} : { digest: deployed }),
  },
  settings: {
    image: { url: "registry.example.com/shop:1", isPublic: true },
    port: 8080,
    plan: "basic",
    ...settings,
  },
});
const now: ProjectSpec = {
  ...exampleSpec,
  plan: "premium",
  paymentMode: "monthly",
  instances: 2,
  description: "stays",
  image: { url: "registry.example.com/shop:2", isPublic: true, digest: other },
  envsFrom: [{ name: "new" }],
  healthcheck: { enabled: true, path: "/new" },
  terminationGracePeriodSeconds: 60,
};
const back = (one: Deployment, from = now) => withDeployment(from, one, NOW, catalog);

describe("the permissions of a rollback", () => {
  it("are those of what it changes", () => {
    const image = { url: "registry.example.com/shop:2", isPublic: true, digest };
    expect(permissionsOf(now, { ...now, restartedAt: NOW, image })).toEqual([]);
    expect(permissionsOf(now, { ...now, plan: "basic" })).toEqual(["project.plan.update"]);
    expect(permissionsOf(now, { ...now, paymentMode: "yearly" })).toEqual(["project.plan.update"]);
    expect(permissionsOf(now, { ...now, envsFrom: [{ name: "old" }] })).toEqual(["project.envs.update"]);
    const references = [{ reference: "shop-db.host", project: "pshop" }];
    const referring = { ...now, envsFrom: [{ name: "new", references }] };
    expect(permissionsOf(now, referring)).toEqual(["project.envs.update"]);
    const reordered = [{ project: "pshop", reference: "shop-db.host" }];
    expect(permissionsOf(referring, { ...now, envsFrom: [{ references: reordered, name: "new" }] })).toEqual(
      [],
    );
    expect(permissionsOf(now, { ...now, image: { ...image, url: "registry.example.com/shop:1" } })).toEqual([
      "project.image.update",
    ]);
    expect(permissionsOf(now, { ...now, command: ["node"] })).toEqual(["project.image.update"]);
    const { envsFrom: _, ...without } = now;
    expect(permissionsOf({ ...without }, { ...without, envsFrom: [] })).toEqual([]);
  });
});

describe("the Secrets of a rollback", () => {
  const namespace = "slipway-org-acme";
  const kept = async (secrets: Record<string, boolean>, names: string[]) => {
    const api = await FakeApiserver.start();
    const client = KubeClient.forUrl(api.url);
    for (const [name, isManaged] of Object.entries(secrets)) {
      const own = isManaged ? { labels: { [labels.managedBy]: MANAGED_BY } } : {};
      await client.create(resources.secrets, { metadata: { name, namespace, ...own } });
    }
    const spec = { ...now, envsFrom: names.map((name) => ({ name })) };
    try {
      await keepSecrets(client, { metadata: { name: "shop", namespace }, spec }, "d1", new Date(NOW));
      const { items } = await client.list<KubernetesObject>(resources.secrets, { namespace });
      return Object.fromEntries(
        items.map(({ metadata }) => [metadata?.name, metadata?.annotations?.[annotations.reusedAt]]),
      );
    } finally {
      await client.close();
      await api.stop();
    }
  };

  it("are marked as needed before the spec names them, but for users' own", async () => {
    expect(await kept({ "shop-env-1": true, own: false, other: true }, ["shop-env-1", "own"])).toEqual({
      "shop-env-1": NOW,
      own: undefined,
      other: undefined,
    });
  });

  it("have to be there", async () => {
    await expect(kept({}, ["shop-env-1"])).rejects.toMatchObject({ status: 409 });
  });
});

describe("withDeployment", () => {
  // Shows: docs/references.md#values: a rollback | the references of the deployment
  it("goes back to what the variables referred to", () => {
    const envsFrom = [{ name: "shop-env-1", references: [{ reference: "shop-db.host", project: "pshop" }] }];
    expect(back(deployment({ envsFrom }, digest)).envsFrom).toEqual(envsFrom);
  });

  // Shows: docs/variable-groups.md#values: a rollback | restores the project's own variables
  it("leaves the variable groups attached as they are", () => {
    const { envsFrom, variableGroups } = back(deployment({ envsFrom: [{ name: "old" }] }, digest), {
      ...now,
      variableGroups: ["mail", "logs"],
    });
    expect([envsFrom, variableGroups]).toEqual([[{ name: "old" }], ["mail", "logs"]]);
  });

  // Shows: docs/applications.md#project-settings: rollback: image (by its digest), command, port, variables
  it("restores image, port, environment, health check, plan and payment mode, and nothing else", () => {
    const settings = {
      image: {
        url: "registry.example.com/shop:1",
        isPublic: false,
        pullSecretRef: { name: "pull" },
      },
      port: 3000,
      plan: "basic",
      paymentMode: "yearly" as const,
      envsFrom: [{ name: "old" }],
      healthcheck: { enabled: true, path: "/old", livenessPath: "/live" },
      terminationGracePeriodSeconds: 90,
    };
    expect(back(deployment(settings, digest))).toEqual({
      ...now,
      ...settings,
      image: { ...settings.image, digest },
      restartedAt: NOW,
    });
  });

  it("restores how a worker shows that it is ready, or that it shows nothing", () => {
    const from = { ...now, ...workerSpec, healthcheck: undefined } as ProjectSpec;
    const earlier = deployment({ port: undefined, readiness: { command: ["true"] } });
    expect(back(earlier, from).readiness).toEqual({ command: ["true"] });
    expect(back(deployment({ port: undefined }), from)).not.toHaveProperty("readiness");
  });

  // Shows: docs/applications.md#command: another command is a deployment, and a rollback restores it
  it("restores the command, or that the image's own ran, and gives none to a project that is built", () => {
    const earlier = deployment({ command: ["node", "worker.js"] });
    expect(back(earlier, { ...now, command: ["other"] }).command).toEqual(["node", "worker.js"]);
    expect(back(deployment({}), { ...now, command: ["other"] })).not.toHaveProperty("command");
    const { image: _, ...others } = now;
    const source = { connectionId: "g1", repositoryId: "r1", branch: "main", autoDeploy: true };
    expect(back(earlier, { ...others, source, build: {} })).not.toHaveProperty("command");
  });

  it("removes what the deployment did not have", () => {
    const spec = back(deployment({}, digest));
    expect(spec).not.toHaveProperty("envsFrom");
    expect(spec).not.toHaveProperty("healthcheck");
    expect(spec).not.toHaveProperty("terminationGracePeriodSeconds");
    expect(spec.paymentMode).toBe("monthly");
  });

  it.each([
    ["none", undefined],
    ["what is none", "registry.example.com/shop@sha256:short"],
  ])("leaves the image as it was when the deployment's digest is %s", (_name, deployed) => {
    expect(back(deployment({}, deployed)).image).toEqual({
      url: "registry.example.com/shop:1",
      isPublic: true,
    });
    const pinned = { url: "registry.example.com/shop:1", isPublic: true, digest };
    expect(back(deployment({ image: pinned }, deployed)).image).toEqual(pinned);
  });

  it.each([
    ["whose plan is no longer sold", { plan: "golden" }],
    ["without an image", { image: undefined }],
  ])("answers 409 to a deployment %s", (_name, settings) => {
    expect(() => back(deployment(settings))).toThrow(
      expect.objectContaining({ status: 409, code: "DEPLOYMENT_NOT_AVAILABLE" }),
    );
  });

  it("refuses what the old plan lacks for the project as it is now", () => {
    const scaled: ProjectSpec = { ...now, autoscaling: { enabled: true, maxInstances: 3 } };
    expect(() => back(deployment({ plan: "basic" }), scaled)).toThrow(
      expect.objectContaining({ status: 403, code: "AUTOSCALING_NOT_AVAILABLE_FOR_PLAN" }),
    );
    expect(() => back(deployment({ plan: "basic" }), { ...now, instances: 4 })).toThrow(
      expect.objectContaining({ status: 400 }),
    );
  });
});

describe("a rollback of what is built from Git", () => {
  const repository = "builds.example/alpha/p1";
  const ofBuilds = (url = repository) => ({
    image: { url, digest, isPublic: false, pullSecretRef: { name: "slipway-builds-registry" } },
  });
  const source = { connectionId: "g1", repositoryId: "r1", branch: "main", autoDeploy: true };
  const { image: _, ...rest } = now;
  const built: Pick<Project, "spec" | "status"> = {
    spec: { ...rest, source, build: {} },
    status: {
      build: { imageBuildAt: "2026-03-01T11:00:00.000Z", image: { reference: repository, digest: other } },
    },
  };
  const rollbackTo = (one: Deployment, of = built, at = NOW) => builtRollback(of, one, new Date(at));

  it("leaves the spec without an image, and is to the digest", () => {
    const one = deployment(ofBuilds(), digest);
    const spec = back(one, built.spec);
    expect(spec).not.toHaveProperty("image");
    expect(spec).toMatchObject({ source, plan: "basic", restartedAt: NOW });
    expect(rollbackTo(one)).toEqual({ at: NOW, digest });
    expect(rollbackTo(deployment(ofBuilds(`${repository}@${other}`), digest))).toEqual(rollbackTo(one));
  });

  // Shows: docs/applications.md#project-settings: rollback of a project that is built from Git: a
  it("is never before the build that it overtakes", () => {
    expect(rollbackTo(deployment(ofBuilds(), digest), built, "2026-03-01T10:59:00Z")).toEqual({
      at: "2026-03-01T11:00:00.000Z",
      digest,
    });
  });

  it("is nothing to a project from an image", () => {
    expect(rollbackTo(deployment({}, digest), { spec: now })).toBeUndefined();
  });

  it.each([
    ["an image of its time before Git", deployment({}, digest), built],
    ["another project's image", deployment(ofBuilds("builds.example/alpha/p2"), digest), built],
    ["no digest", deployment(ofBuilds()), built],
    ["no build since", deployment(ofBuilds(), digest), { spec: built.spec }],
  ])("answers 409 with %s", (_name, one, of) => {
    expect(() => rollbackTo(one, of)).toThrow(
      expect.objectContaining({ status: 409, code: "DEPLOYMENT_NOT_AVAILABLE" }),
    );
  });
});
