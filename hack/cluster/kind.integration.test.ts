import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { CommandError, run } from "../lib/exec.ts";
import { ensureBinary } from "./binaries.ts";
import { kindConfig, publishedImage } from "./kind/config.ts";
import type { KubernetesVersion } from "./node-images.ts";

/** Answers the queries that kind sends to Docker before it reads the configuration, and fails everything after that. */
const docker = `#!/bin/sh
case "$1" in
info) echo '{"CgroupVersion":"2","MemoryLimit":true,"PidsLimit":true,"CPUShares":true,"SecurityOptions":[]}' ;;
-v) echo "Docker version 28.0.0, build 0" ;;
ps) ;;
*) exit 1 ;;
esac
`;

const configWith = (kubernetes?: KubernetesVersion, nodes = 1) =>
  kindConfig({
    apiPort: 8081,
    ingressPort: 8080,
    nodes,
    image: publishedImage(kubernetes),
    isOwnImage: false,
  });

let dir: string;
let kind: string;

beforeAll(async () => {
  kind = await ensureBinary("kind");
  dir = await mkdtemp(join(tmpdir(), "slipway-kind-"));
  await writeFile(join(dir, "docker"), docker);
  await chmod(join(dir, "docker"), 0o755);
});
afterAll(() => rm(dir, { recursive: true }));

/** How far kind itself comes with a configuration on a machine whose engine starts nothing. */
async function refusal(config: string): Promise<string> {
  const env = { PATH: `${dir}:${process.env.PATH}`, KIND_EXPERIMENTAL_PROVIDER: "docker" };
  try {
    await run(kind, ["create", "cluster", "--config", "-"], { input: config, env });
  } catch (error) {
    if (error instanceof CommandError) {
      return error.stderr;
    }
    throw error;
  }
  throw new Error("an engine that starts nothing started a cluster");
}

test("kind accepts our configuration, as far as the image of the node", async () => {
  const config = await configWith();
  expect(await refusal(config)).toMatch(/Ensuring node image \(kindest\/node:v1\.34\.11\)/);
});

test("it accepts workers beside the control plane", async () => {
  expect(await refusal(await configWith(undefined, 3))).toMatch(/Ensuring node image/);
});

test("its node has another version of Kubernetes when that is asked for", async () => {
  const config = await configWith("1.32");
  expect(await refusal(config)).toMatch(/Ensuring node image \(kindest\/node:v1\.32\.11\)/);
});

test("node ports are Kubernetes' own choice of those that lead to loopback", async () => {
  const { nodes } = parse(await configWith()) as {
    nodes: { extraPortMappings: Record<string, unknown>[]; kubeadmConfigPatches: string[] }[];
  };
  const ports = (nodes[0]?.extraPortMappings ?? []).slice(3);
  expect(ports).toHaveLength(100);
  expect(ports.every((one) => one.containerPort === one.hostPort && one.listenAddress === "127.0.0.1")).toBe(
    true,
  );
  expect(parse(nodes[0]?.kubeadmConfigPatches[0] ?? "")).toMatchObject({
    apiServer: {
      extraArgs: { "service-node-port-range": `${ports[0]?.hostPort}-${ports.at(-1)?.hostPort}` },
    },
  });
});

test("kind refuses it with a key, a role or a network that is none", async () => {
  const config = await configWith();
  expect(await refusal(config.replaceAll("listenAddress", "listenAdress"))).toContain(
    "unable to decode config",
  );
  expect(await refusal(config.replace("control-plane", "worker"))).toContain("at least one control-plane");
  expect(await refusal(config.replace("10.96.0.0/16", "10.96.0.0"))).toContain("invalid service subnet");
});
