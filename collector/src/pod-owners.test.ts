import { KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { systemClock } from "@slipway/process";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeApiserver } from "../../test/kit/apiserver/fake-apiserver.ts";
import { eventually } from "../../test/kit/processes/eventually.ts";
import { PodOwners } from "./pod-owners.ts";
import { untilSynced } from "./synced.ts";

let api: FakeApiserver;
let client: KubeClient;
let stop: AbortController;
beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  await client.close();
  await api.stop();
});

const namespace = "slipway-org-o1";
const create = (name: string, type: string, more: object = {}, organization = "o1") =>
  client.create<KubernetesObject>(resources.pods, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...{ name, namespace },
      labels: {
        "slipway.dev/organization": organization,
        "slipway.dev/project": "p1",
        "slipway.dev/type": type,
      },
    },
    ...more,
  } as KubernetesObject);

async function follow(withRestarts: boolean): Promise<PodOwners> {
  const pods = new PodOwners({ client, clock: systemClock, node: "node-1", withRestarts });
  void pods.run(stop.signal);
  await untilSynced(pods, stop.signal);
  return pods;
}

const status = (restartCount: number) => ({
  spec: { nodeName: "node-1" },
  status: {
    containerStatuses: [
      { name: "sidecar", restartCount: 9 },
      { name: "app", restartCount },
    ],
  },
});

test("instances have the restarts of their own container, as these change, and are gone with their pods", async () => {
  await create("p1-a", "http", status(0));
  // Runs of jobs, and pods that are in another organization's namespace.
  await create("run", "job", status(0));
  await create("foreign", "http", status(0), "o2");
  const pods = await follow(true);
  const owned = { organization: "o1", project: "p1", container: "app", instance: "p1-a" };
  expect(pods.list()).toEqual([{ ...owned, uid: expect.any(String), restarts: 0 }]);
  const { status: restarted } = status(3);
  await client.patch(
    resources.pods,
    { namespace, name: "p1-a" },
    { status: restarted },
    { subresource: "status" },
  );
  await eventually("the restarts are known", () => pods.list()[0]?.restarts === 3);
  await client.delete(resources.pods, { namespace, name: "p1-a" });
  await eventually("it is gone", () => pods.list().length === 0);
});

test("a pod that has ended is no instance any more, and its log has its owner still", async () => {
  const { spec, status: running } = status(0);
  for (const phase of ["Running", "Failed", "Succeeded"]) {
    await create(`p1-${phase.toLowerCase()}`, "http", { spec, status: { ...running, phase } });
  }
  const pods = await follow(true);
  expect(pods.list().map(({ instance }) => instance)).toEqual(["p1-running"]);
  const evicted = await client.get<KubernetesObject>(resources.pods, { namespace, name: "p1-failed" });
  expect(pods.find(evicted.metadata?.uid ?? "")).toMatchObject({ instance: "p1-failed", hasEnded: true });
});

test("without restarts nothing but metadata is requested", async () => {
  await create("p1-0", "postgresql", { spec: { nodeName: "node-1" } });
  const pods = await follow(false);
  expect(pods.list()).toMatchObject([{ instance: "p1-0", container: "database", restarts: undefined }]);
});
