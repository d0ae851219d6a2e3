import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { run, succeeds } from "../lib/exec.ts";
import { UserError } from "../lib/steps.ts";
import { addresses } from "./addresses.ts";
import { guardRules, guardTable } from "./guard.ts";

/** Kernel settings that routing between pods, Services and the machine needs. */
const settings: Record<string, string> = {
  "net/ipv4/ip_forward": "1",
  "net/bridge/bridge-nf-call-iptables": "1",
  // Many pods watch many files.
  "fs/inotify/max_user_instances": "8192",
  "fs/inotify/max_user_watches": "524288",
};

/** Closes the cluster to the outside, then makes the bridge that has the node's address. Repeatable. */
export async function ensureNetwork(): Promise<void> {
  await run("nft", ["-f", "-"], { input: guardRules() });
  if (!existsSync("/proc/sys/net/bridge")) {
    await succeeds("modprobe", ["br_netfilter"]);
  }
  if (!existsSync("/sys/module/overlay")) {
    await succeeds("modprobe", ["overlay"]);
  }
  for (const [name, value] of Object.entries(settings)) {
    const file = `/proc/sys/${name}`;
    if (!existsSync(file)) {
      throw new UserError(`this kernel has no ${file}`);
    }
    await writeFile(file, value);
  }
  const bridge = addresses.bridge;
  if (!existsSync(`/sys/class/net/${bridge}`)) {
    await run("ip", ["link", "add", bridge, "type", "bridge"]);
  }
  const prefix = addresses.podCidr.split("/")[1];
  await run("ip", ["address", "replace", `${addresses.node}/${prefix}`, "dev", bridge]);
  await run("ip", ["link", "set", bridge, "up"]);
  await ensureNamespaceFolder();
}

/** Where network namespaces have their names. */
const NAMESPACES = "/run/netns";

/**
 * Makes that folder a mount of its own, as `ip netns add` does. Done by its first user after pods have started, it would
 * hide their namespaces' mounts, and those pods could never be removed.
 */
async function ensureNamespaceFolder(): Promise<void> {
  const mounts = await readFile("/proc/self/mounts", "utf8");
  if (mounts.includes(` ${NAMESPACES} `) || mounts.includes(` ${NAMESPACES}/`)) {
    return;
  }
  await mkdir(NAMESPACES, { recursive: true });
  await run("mount", ["--bind", NAMESPACES, NAMESPACES]);
  await run("mount", ["--make-shared", NAMESPACES]);
}

/** Lines of `iptables-save` without the chains and rules that CNI plugins and Kubernetes made. */
export function withoutClusterRules(saved: string): string {
  return saved
    .split("\n")
    .filter((line) => !/\b(KUBE|CNI)-/.test(line))
    .join("\n");
}

/** Removes the bridge, the nftables tables and the iptables chains of the cluster. Repeatable. */
export async function removeNetwork(): Promise<void> {
  for (const [save, restore] of [
    ["iptables-save", "iptables-restore"],
    ["ip6tables-save", "ip6tables-restore"],
  ] as const) {
    const saved = await run(save, []).catch(() => "");
    const kept = withoutClusterRules(saved);
    if (kept !== saved) {
      await run(restore, [], { input: kept });
    }
  }
  for (const table of [`inet ${guardTable}`, "inet slipway_netpol", "ip kube-proxy", "ip6 kube-proxy"]) {
    await succeeds("nft", ["delete", "table", ...table.split(" ")]);
  }
  if (existsSync(`/sys/class/net/${addresses.bridge}`)) {
    await run("ip", ["link", "delete", addresses.bridge]);
  }
}
