import { existsSync, readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { removeControlGroup } from "../lib/control-group.ts";
import { run, succeeds } from "../lib/exec.ts";
import { root, runDir } from "../lib/paths.ts";
import { say, step, UserError } from "../lib/steps.ts";
import { binaryPath } from "./binaries.ts";
import { paths } from "./components.ts";
import { removeNetwork } from "./network.ts";
import { ownerOfMachine } from "./ownership.ts";
import { isRunning, knownDaemons, SYSTEM_GROUP, stopDaemon } from "./processes.ts";

/** Mount points of /proc/self/mounts below a folder, the deepest first. Octal escapes are undone. */
export function mountsBelow(mounts: string, folder: string): string[] {
  return mounts
    .split("\n")
    .map((line) =>
      (line.split(" ")[1] ?? "").replace(/\\(\d{3})/g, (_, code: string) =>
        String.fromCharCode(Number.parseInt(code, 8)),
      ),
    )
    .filter((point) => point.startsWith(`${folder}/`) && !point.startsWith(`${runDir}/buildah/`))
    .sort((a, b) => b.length - a.length);
}

/**
 * Stops everything that the embedded cluster runs: pods first, in order and with time to end; then its processes; then
 * mounts, interfaces and packet rules. Safe on a half-made cluster, and on none.
 * @param stateDir `.slipway` of the checkout that owns the cluster
 * @param podGraceSeconds how long pods have to end: one second is enough where their data is removed next
 */
export async function stopEmbedded(stateDir: string, podGraceSeconds = 10): Promise<void> {
  // The kubelet would start again what is stopped next.
  await step("kubelet", async () => say((await stopDaemon("kubelet")) ? "stopped" : "did not run"));
  await step("pods", () => stopPods(podGraceSeconds));
  await step("processes", async () => {
    const groups = [
      ["netpol", "volumes", "kube-proxy", "kube-scheduler", "kube-controller-manager"],
      ["kube-apiserver"],
    ];
    const named = groups.flat();
    groups.push(knownDaemons().filter((name) => !named.includes(name)));
    for (const group of groups) {
      const stopped = await Promise.all(group.map(async (name) => ((await stopDaemon(name)) ? [name] : [])));
      if (stopped.flat().length > 0) {
        say(`stopped ${stopped.flat().join(", ")}`);
      }
    }
    await killShims();
    await removeControlGroup(SYSTEM_GROUP);
  });
  await step("mounts", async () => {
    for (const folder of [stateDir, runDir]) {
      await unmountBelow(folder);
    }
    await removeNamespaces();
  });
  await step("network", removeNetwork);
  await clearRunDir();
}

/**
 * Takes down the cluster of another checkout of which no process runs any more: a restart of the machine, or a run that
 * was killed, left its mounts, network and files. A cluster that runs is left alone.
 */
export async function takeDownAbandoned(): Promise<void> {
  const owner = ownerOfMachine();
  if (owner === undefined || owner.root === root || owner.alive) {
    return;
  }
  say(`none of its processes runs any more: what ${owner.root} left is taken down; its data stays`);
  await stopEmbedded(join(owner.root, ".slipway"));
}

/** Removes sockets, pid files and the like. buildah's folder stays: a build of images may be under way. */
async function clearRunDir(): Promise<void> {
  if (!existsSync(runDir)) {
    return;
  }
  for (const entry of readdirSync(runDir)) {
    if (entry !== "buildah") {
      await rm(join(runDir, entry), { recursive: true, force: true });
    }
  }
}

async function stopPods(graceSeconds: number): Promise<void> {
  const kubernetes = binaryPath("kubernetes");
  if (!isRunning("containerd") || !existsSync(kubernetes)) {
    say("no container runtime to ask");
    return;
  }
  try {
    say(
      (
        await run(kubernetes, ["stop-pods", `unix://${paths.containerdSocket}`, `${graceSeconds}s`], {
          timeoutMs: 120_000,
        })
      ).trim(),
    );
  } catch (error) {
    // What is left ends with its shim, below.
    say(`not all of them stopped in order: ${(error as Error).message}`);
  }
}

/** Processes whose command line has `-address` of this cluster's containerd: shims, parents of every container. */
function shims(): number[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
        return (words[0] ?? "").includes("containerd-shim") && words.includes(paths.containerdSocket);
      } catch {
        return false;
      }
    });
}

function descendants(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
    return children === ""
      ? []
      : children
          .split(" ")
          .map(Number)
          .flatMap((child) => [child, ...descendants(child)]);
  } catch {
    return [];
  }
}

/** Kills what outlived the runtime's own stopping: every container's processes, then their shim. */
async function killShims(): Promise<void> {
  for (const shim of shims()) {
    for (const pid of [...descendants(shim).reverse(), shim]) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has already ended.
      }
    }
  }
  for (let tries = 0; shims().length > 0 && tries < 50; tries++) {
    await sleep(100);
  }
}

async function unmountBelow(folder: string): Promise<void> {
  for (let tries = 0; tries < 20; tries++) {
    const points = mountsBelow(readFileSync("/proc/self/mounts", "utf8"), folder);
    if (points.length === 0) {
      return;
    }
    for (const point of points) {
      if (!(await succeeds("umount", [point])) && tries > 5) {
        await succeeds("umount", ["--lazy", point]);
      }
    }
    await sleep(200);
  }
  const left = mountsBelow(readFileSync("/proc/self/mounts", "utf8"), folder);
  if (left.length > 0) {
    throw new UserError(`still mounted, so nothing below is removed: ${left.join(" ")}`);
  }
}

/** Network namespaces that containerd made; those that name no other owner are left over from this cluster's pods. */
async function removeNamespaces(): Promise<void> {
  const folder = "/run/netns";
  if (!existsSync(folder)) {
    return;
  }
  for (const name of readdirSync(folder).filter((entry) => entry.startsWith("cni-"))) {
    const own = await run("ip", ["-n", name, "-o", "-4", "address", "show"]).catch(() => "");
    // A namespace without addresses is one whose pod is being created or deleted.
    if (own === "" || own.includes(" 10.244.")) {
      await succeeds("ip", ["netns", "delete", name]);
    }
  }
}

/** Removes everything in the state folder but logs, which show what happened. */
export async function purgeState(stateDir: string): Promise<void> {
  if (!existsSync(stateDir)) {
    return;
  }
  const left = mountsBelow(readFileSync("/proc/self/mounts", "utf8"), stateDir);
  if (left.length > 0) {
    throw new UserError(`mounted below ${stateDir}, so it is not removed: ${left.join(" ")}`);
  }
  for (const entry of readdirSync(stateDir)) {
    if (entry !== "logs") {
      await rm(join(stateDir, entry), { recursive: true, force: true });
    }
  }
  for (const folder of ["/var/lib/cni/results", "/var/lib/cni/networks/slipway"]) {
    if (!existsSync(folder)) {
      continue;
    }
    for (const entry of readdirSync(folder)) {
      if (entry.startsWith("slipway-") || folder.endsWith("/slipway")) {
        await rm(join(folder, entry), { force: true });
      }
    }
  }
}
