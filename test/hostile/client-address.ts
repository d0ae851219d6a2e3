/** An address of the victim's own, so that what is refused to the attackers' address is not refused to it. */
import { run } from "../../hack/lib/exec.ts";
import { cluster } from "../e2e/support/cluster.ts";
import { stack } from "../e2e/support/stack.ts";

/** Beside every network of the stack; on this machine alone. */
const ADDRESS = "172.31.254.1";

export interface Route {
  /** Where the API and the ingress are reached. */
  readonly apiUrl: string;
  readonly ingressUrl: string;
  /** From where. */
  readonly localAddress?: string;
  remove(): Promise<void>;
}

/**
 * The way of a client that is not the attackers': to the ingress's pod, from an address that this machine has for as long
 * as the test runs. Clients on 127.0.0.1 are all one client to the ingress. Where there is no such pod on this machine, or
 * no right to add an address, it is theirs.
 */
export async function routeOfItsOwn(): Promise<Route> {
  const shared = { apiUrl: stack.url, ingressUrl: stack.ingressUrl, remove: async () => undefined };
  const { items } = await cluster.core.listNamespacedPod({
    namespace: "slipway-ingress",
    labelSelector: "app.kubernetes.io/name=traefik",
  });
  const pod = items.find(({ status }) => status?.phase === "Running");
  const portOf = (name: string) =>
    pod?.spec?.containers[0]?.ports?.find((port) => port.name === name)?.containerPort;
  const [web, api] = [portOf("web"), portOf("api")];
  if (process.getuid?.() !== 0 || !pod?.status?.podIP || !web || !api) {
    return shared;
  }
  await run("ip", ["address", "replace", `${ADDRESS}/32`, "dev", "lo"]);
  return {
    apiUrl: `http://${pod.status.podIP}:${api}`,
    ingressUrl: `http://${pod.status.podIP}:${web}`,
    localAddress: ADDRESS,
    remove: async () => {
      await run("ip", ["address", "delete", `${ADDRESS}/32`, "dev", "lo"]);
    },
  };
}
