import { once } from "node:events";
import { createServer } from "node:net";
import { run } from "../lib/exec.ts";
import { root } from "../lib/paths.ts";
import { UserError } from "../lib/steps.ts";
import { ports } from "./addresses.ts";
import { missingBinaries } from "./binaries.ts";
import { buildsBinaries } from "./builds/index.ts";
import { neededBinaries } from "./embedded.ts";
import { ownerOfMachine } from "./ownership.ts";
import { isRunning } from "./processes.ts";

/** Unix sockets below the kubelet's folder may have 107 bytes in all. */
const longestRoot = 60;

/** Whether `go version` reports Go 1.24 or later. */
export function goIsRecent(report: string): boolean {
  const match = /go(\d+)\.(\d+)/.exec(report);
  return match !== null && (Number(match[1]) > 1 || Number(match[2]) >= 24);
}

/**
 * Everything that would stop the embedded cluster later, checked before anything is changed.
 * @throws UserError naming what is missing and what to do
 */
export async function checkMachine(apiPort: number, ingressPort: number, builds: boolean): Promise<void> {
  const owner = ownerOfMachine();
  if (owner !== undefined && owner.root !== root) {
    throw new UserError(
      `this machine's embedded cluster belongs to ${owner.root}; take it down first with its hack/down.sh`,
    );
  }
  if (root.length > longestRoot) {
    throw new UserError(
      `the checkout's path is longer than ${longestRoot} characters, too long for the sockets below it`,
    );
  }
  const missing = missingBinaries([...neededBinaries, ...(builds ? buildsBinaries : [])]);
  if (missing.length > 0) {
    const go = await run("go", ["version"]).catch(() => undefined);
    const wanted = `Go 1.24 or later is needed to build ${missing.join(", ")}`;
    if (go === undefined) {
      throw new UserError(`${wanted}, and there is no go in PATH`);
    }
    if (!goIsRecent(go)) {
      throw new UserError(`${wanted}; this is ${go.trim()}`);
    }
  }
  await checkPort(ingressPort, "127.0.0.1", "choose another by SLIPWAY_INGRESS_PORT");
  await checkPort(apiPort, "127.0.0.1", "choose another by SLIPWAY_API_PORT");
  const own: [string, number[]][] = [
    ["kube-apiserver", [ports.apiserver]],
    ["etcd", [ports.etcdClient, ports.etcdPeer]],
    ["kubelet", [ports.kubelet, 10248]],
    ["registry", [ports.registry]],
    ["registry-builds", [ports.buildsRegistry]],
    ["git", [ports.git]],
    ["kube-controller-manager", [10257]],
    ["kube-scheduler", [10259]],
    ["kube-proxy", [10249, 10256]],
    ["netpol", [10290]],
    ["volumes", [10291]],
  ];
  for (const [daemon, list] of own) {
    if (isRunning(daemon)) {
      continue;
    }
    for (const port of list) {
      await checkPort(port, "127.0.0.1", `the cluster's ${daemon} needs it`);
    }
  }
}

async function checkPort(port: number, host: string, advice: string): Promise<void> {
  const server = createServer();
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") {
      throw error;
    }
    throw new UserError(`port ${port} of ${host} is taken; ${advice}`);
  } finally {
    server.close();
  }
}
