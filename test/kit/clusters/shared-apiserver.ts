/**
 * kube-apiservers with the definitions that Slipway needs, which the test files of one worker use one after the other: a start
 * and the definitions take ten seconds. Between two files everything that was created is removed from etcd.
 */
import { truncate } from "node:fs/promises";
import { KubeClient } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { startApiserver, type TestApiserver } from "../../../hack/cluster/apiserver.ts";
import { waitFor } from "../../../hack/lib/wait.ts";
import { recordPermissions } from "../../../hack/testing/platform-calls.ts";
import { installDefinitions, middlewareDefinition, slipwayDefinitions } from "./definitions.ts";
import { EtcdClient } from "./etcd-client.ts";

interface SharedApiserver {
  readonly api: TestApiserver;
  readonly etcd: EtcdClient;
  /** Keys that were there before any test. */
  readonly own: ReadonlySet<string>;
}

/** Those that no file uses now. */
const unused: SharedApiserver[] = [];

/** What kube-apiserver makes for itself, at any time. */
const OWN_PREFIXES = [
  "/registry/apiextensions.k8s.io/",
  "/registry/apiregistration.k8s.io/",
  "/registry/leases/kube-system/apiserver-",
  "/registry/masterleases/",
  "/registry/ranges/",
];
/** What it makes last of all when it starts on an empty etcd. */
const LAST_KEYS = [
  "/registry/namespaces/kube-node-lease",
  "/registry/services/specs/default/kubernetes",
  "/registry/endpointslices/default/kubernetes",
];

/**
 * A kube-apiserver with Slipway's and Traefik's definitions and nothing else in it. Its `stop` leaves it to the next
 * file of this worker. For tests that neither stop it nor leave other definitions or change what it
 * made for itself; others start one of their own.
 */
export async function acquireApiserver(): Promise<TestApiserver> {
  const shared = unused.pop() ?? (await startShared());
  return { ...shared.api, stop: () => release(shared) };
}

async function startShared(): Promise<SharedApiserver> {
  const api = await startApiserver();
  const client = KubeClient.fromConfig(loadKubeConfig({ file: api.kubeconfig }), { userAgent: "test" });
  await installDefinitions(client, [...(await slipwayDefinitions()), await middlewareDefinition()]);
  await client.close();
  const etcd = new EtcdClient(api.etcd);
  const own = await waitFor("kube-apiserver's own objects", 60_000, async () => {
    const keys = new Set(await etcd.keys("/registry/"));
    return LAST_KEYS.every((key) => keys.has(key)) && keys;
  });
  return { api, etcd, own };
}

async function release(shared: SharedApiserver): Promise<void> {
  const { api, etcd, own } = shared;
  await recordPermissions(api.auditLog);
  await truncate(api.auditLog);
  const keys = await etcd.keys("/registry/");
  await etcd.delete(
    keys.filter((key) => !own.has(key) && !OWN_PREFIXES.some((prefix) => key.startsWith(prefix))),
  );
  unused.push(shared);
}
