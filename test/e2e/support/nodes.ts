import type { V1Node, V1Pod } from "@kubernetes/client-node";
import { type Engine, enginesHere } from "../../../hack/cluster/kind/engine.ts";
import { run, succeeds } from "../../../hack/lib/exec.ts";
import { cluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";

/** Nodes by name that are Ready. */
export async function readyNodes(): Promise<string[]> {
  const { items } = await cluster.core.listNode();
  const isReady = ({ status }: V1Node) =>
    status?.conditions?.some((one) => one.type === "Ready" && one.status === "True") === true;
  return items.filter(isReady).map(({ metadata }) => metadata?.name ?? "");
}

/** The node that the ingress is on, and the apiserver with etcd. @throws when there is none */
export async function ingressNode(): Promise<string> {
  const { items } = await cluster.core.listNode({ labelSelector: "slipway.dev/ingress" });
  const name = items[0]?.metadata?.name;
  if (!name) {
    throw new Error("no node is labelled as the ingress's: the cluster is not kind's");
  }
  return name;
}

/** A node's own address, which this machine reaches. @throws when it has none */
export async function addressOf(node: string): Promise<string> {
  const { status } = await cluster.core.readNode({ name: node });
  const found = status?.addresses?.find(({ type }) => type === "InternalIP");
  if (!found) {
    throw new Error(`the node ${node} has no address`);
  }
  return found.address;
}

/** Pods of a namespace with these labels that run and are not leaving. */
export async function runningPods(namespace: string, labelSelector: string): Promise<V1Pod[]> {
  const { items } = await cluster.core.listNamespacedPod({ namespace, labelSelector });
  return items.filter(
    ({ metadata, status }) => status?.phase === "Running" && metadata?.deletionTimestamp === undefined,
  );
}

export const nodeOf = (pod: V1Pod | undefined): string => pod?.spec?.nodeName ?? "";

/** Closes a node to new pods, or opens it again. */
export async function cordon(node: string, isClosed = true): Promise<void> {
  const found = await cluster.core.readNode({ name: node });
  await cluster.core.replaceNode({
    name: node,
    body: { ...found, spec: { ...found.spec, unschedulable: isClosed } },
  });
}

/** Evicts every pod of a node but those of the node itself and of DaemonSets, as `kubectl drain` does, within disruption budgets. */
export async function drain(node: string): Promise<void> {
  await eventually(() => cordon(node));
  const { items } = await cluster.core.listPodForAllNamespaces({ fieldSelector: `spec.nodeName=${node}` });
  const evictable = items.filter(({ metadata, status }) => {
    const owner = metadata?.ownerReferences?.[0]?.kind;
    const ended = status?.phase === "Succeeded" || status?.phase === "Failed";
    return owner !== "DaemonSet" && owner !== "Node" && !ended;
  });
  await Promise.all(
    evictable.map(({ metadata }) => {
      const { name = "", namespace = "", uid } = metadata ?? {};
      const body = { metadata: { name, namespace }, deleteOptions: { preconditions: { uid } } };
      return eventually(async () => {
        try {
          await cluster.core.createNamespacedPodEviction({ name, namespace, body });
        } catch (error) {
          // It is gone, or another has its name.
          if (![404, 409].includes((error as { code?: number }).code ?? 0)) {
            throw error;
          }
        }
      });
    }),
  );
}

/** The engine that runs this node. @throws when none of this machine does: the cluster is not kind's */
async function engineWith(node: string): Promise<Engine> {
  for (const engine of await enginesHere()) {
    if (await succeeds(engine.name, ["container", "inspect", node], { env: engine.env })) {
      return engine;
    }
  }
  throw new Error(`no engine of this machine runs the node ${node}`);
}

/** Runs a shell's command on a node. @returns its standard output */
export async function onNode(node: string, command: string): Promise<string> {
  const { name, env } = await engineWith(node);
  return run(name, ["exec", node, "/bin/sh", "-c", command], { env });
}

/** Freezes a node with all that runs on it, as a machine that hangs. @returns what thaws it */
export async function freeze(node: string): Promise<() => Promise<void>> {
  const { name, env } = await engineWith(node);
  await run(name, ["pause", node], { env });
  return async () => {
    await run(name, ["unpause", node], { env });
  };
}
