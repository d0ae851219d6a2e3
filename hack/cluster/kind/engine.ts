/** What runs kind's nodes: Docker, or podman as root. */
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { imageCache } from "../../images/store.ts";
import { run, succeeds } from "../../lib/exec.ts";
import { confDir, root } from "../../lib/paths.ts";

export type EngineName = "docker" | "podman";

/** Debian packages of podman with networks in which nodes find each other by name. */
export const podmanPackages = ["podman", "netavark", "aardvark-dns", "runc", "iptables"];

/** A network of these scripts' own: it goes with the cluster, and other clusters of kind do not share it. */
const network = "slipway-kind";

const storageConf = join(confDir, "kind-storage.conf");

/** Environment of kind and of the engine's own command. Pure. */
export function engineEnvironment(engine: EngineName, groups: { unified: boolean }): Record<string, string> {
  if (engine === "docker") {
    return { KIND_EXPERIMENTAL_PROVIDER: "docker" };
  }
  return {
    KIND_EXPERIMENTAL_PROVIDER: "podman",
    KIND_EXPERIMENTAL_PODMAN_NETWORK: network,
    CONTAINERS_STORAGE_CONF: storageConf,
    ...(groups.unified ? {} : { CONTAINERS_CONF: join(root, "hack/cluster/kind/containers.conf") }),
  };
}

/** podman's storage, where it is anyway, with the image cache beside it: the node's image need not be copied. Pure. */
export const storageConfiguration = (images: string): string => `[storage]
driver = "overlay"
runroot = "/run/containers/storage"
graphroot = "/var/lib/containers/storage"

[storage.options]
additionalimagestores = [${JSON.stringify(images)}]
`;

/** An engine as these scripts use it. */
export interface Engine {
  name: EngineName;
  env: Record<string, string>;
}

/** The environment of this machine's engine; what it names is written by `prepareEngine`. */
export const engineOf = (name: EngineName): Engine => ({
  name,
  env: engineEnvironment(name, { unified: existsSync("/sys/fs/cgroup/cgroup.controllers") }),
});

/** Makes what kind expects of the machine with this engine. */
export async function prepareEngine(engine: Engine, log: string): Promise<void> {
  if (engine.name === "docker") {
    return;
  }
  const { env } = engine;
  await mkdir(confDir, { recursive: true });
  await writeFile(storageConf, storageConfiguration(join(imageCache, "storage")));
  // kind mounts it into each node; podman refuses a folder that is missing.
  await mkdir("/lib/modules", { recursive: true });
  // IPv4 alone: kind itself would add IPv6 addresses, and name servers that no pod reaches.
  if (!(await succeeds("podman", ["network", "exists", network], { env }))) {
    await run("podman", ["network", "create", "--driver", "bridge", network], { env, log });
  }
}

/** Removes what `prepareEngine` made, once there is no node. */
export async function removeNetwork({ name, env }: Engine): Promise<void> {
  if (name === "podman" && (await succeeds("podman", ["network", "exists", network], { env }))) {
    await run("podman", ["network", "rm", network], { env });
  }
}

const inspected = z.array(z.object({ subnets: z.array(z.object({ subnet: z.string() })) }));

/** The IPv4 networks in what `podman network inspect` prints. Pure. */
export const subnetsOf = (output: string): string[] =>
  inspected
    .parse(JSON.parse(output))
    .flatMap(({ subnets }) => subnets.map(({ subnet }) => subnet))
    .filter((subnet) => !subnet.includes(":"));

/** Networks that the nodes' addresses are from: Docker's choice is out of one range, podman's is known. */
export async function nodeNetworks({ name, env }: Engine): Promise<string[]> {
  return name === "docker"
    ? ["172.16.0.0/12"]
    : subnetsOf(await run("podman", ["network", "inspect", network], { env }));
}

/** The engines that may run nodes of these scripts on this machine. */
export async function enginesHere(): Promise<Engine[]> {
  const engines: Engine[] = [];
  if (existsSync(storageConf) && (await succeeds("podman", ["--version"]))) {
    engines.push(engineOf("podman"));
  }
  if (await succeeds("docker", ["info"], { timeoutMs: 5_000 })) {
    engines.push(engineOf("docker"));
  }
  return engines;
}
