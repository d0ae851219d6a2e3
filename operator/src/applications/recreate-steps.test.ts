import { byLabel, KubeClient, Store } from "@slipway/controller-runtime";
import { type Deployment, labels } from "@slipway/crds";
import { expect, test } from "vitest";
import { exampleWorker } from "../../../test/kit/operator/projects.ts";
import type { Pod, ProjectStores } from "../projects/stores.ts";
import type { HttpApp } from "./app.ts";
import { settingsHash } from "./desired/deployment.ts";
import { RecreateSteps } from "./recreate-steps.ts";

test("a version that has no values for its references is not returned to", async () => {
  const imagePulls = new Store<Pod>({ indexers: { [labels.imagePull]: byLabel(labels.imagePull) } });
  const client = KubeClient.forUrl("http://127.0.0.1:9");
  const steps = new RecreateSteps({
    client,
    stores: { imagePulls } as Partial<ProjectStores> as ProjectStores,
  });
  const deployment = (id: string, status: Deployment["status"]): Deployment => ({
    id,
    status,
    startedAt: "2026-01-01T00:00:00Z",
    settingsHash: id,
    updatedImage: false,
    image: { reference: "app" },
    settings: { plan: "basic" },
  });
  const project = exampleWorker({ namespace: "slipway-org-alpha", name: "shop" });
  const amounts = { cpu: "1", memory: "1Gi", "ephemeral-storage": "1Gi" };
  const wanted = {
    type: "worker",
    id: "shop",
    namespace: "slipway-org-alpha",
    organizationId: "alpha",
    image: "app",
    envSecrets: [],
    resources: { requests: amounts, limits: amounts },
    volume: { capacityGb: 1, mountPath: "/data" },
    replicas: 1,
  } as Partial<HttpApp> as HttpApp;
  const before = deployment("d1", "succeeded");
  const signal = new AbortController().signal;
  const choices = { live: undefined, instances: [], signal };
  const failed = { deployments: [deployment(settingsHash(wanted), "failed"), before] };
  const running = (earlier: HttpApp | undefined) =>
    steps.resolve(project, wanted, { ...choices, status: failed, viewOf: () => earlier });
  const earlier = { ...wanted, image: "before" };
  expect((await running(earlier)).applied).toBe(earlier);
  expect(await running(undefined)).toEqual({ applied: wanted, reported: wanted, isReturned: false });

  const pending = { deployments: [deployment("d2", "in_progress"), before] };
  const held = (view: HttpApp | undefined) =>
    steps.hold(project, wanted, {}, { ...choices, status: pending, viewOf: () => view });
  expect((await held(earlier)).applied).toBe(earlier);
  expect((await held(undefined)).applied).toEqual({ ...wanted, awaitsPreDeploy: true });
  await client.close();
});
