import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { mintRegistryToken } from "@slipway/crds";
import { ensureBinary } from "../cluster/binaries.ts";
import type { BuildsRegistryAccess } from "../cluster/builds/index.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { applyManifests } from "../cluster/kubectl.ts";
import { baseImageValues } from "../images/base/index.ts";
import { pushWithToken } from "../images/index.ts";
import type { ImageSources } from "../images/sources.ts";
import { say, seconds } from "../lib/steps.ts";
import { buildAuthorities, buildTools } from "./build-tools.ts";
import { type BuildsOfChart, paymentSecrets, systemNamespace } from "./chart.ts";
import { deliver } from "./images.ts";

/** Secret of the platform's namespace with the key that signs tokens for the builds' registry, as PEM. */
export const registryKeySecret = { name: "slipway-registry-key", key: "key.pem" } as const;

/** Secret of the platform's namespace with variables for the tools of builds. */
export const buildToolsSecret = "slipway-build-tools";

/** Puts the key, the settings of builds' tools, and what webhooks of payments are signed with, where the platform finds them, which is before its processes start. */
export async function writeBuildSecrets(cluster: Cluster, registry: BuildsRegistryAccess): Promise<void> {
  const labels = { "app.kubernetes.io/managed-by": "slipway" };
  const secret = (name: string, data: Record<string, string>) => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace: systemNamespace, labels },
    data: Object.fromEntries(
      Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString("base64")]),
    ),
  });
  const key = await readFile(registry.keyFile, "utf8");
  const items = [
    secret(registryKeySecret.name, { [registryKeySecret.key]: key }),
    secret(buildToolsSecret, await buildTools()),
  ];
  const there = await cluster.kubectl([
    "get",
    "namespace",
    systemNamespace,
    "--ignore-not-found",
    "-o",
    "name",
  ]);
  if (there.trim() === "") {
    await cluster.kubectl(["create", "namespace", systemNamespace]);
  }
  if (!(await hasSecret(cluster, paymentSecrets.name))) {
    items.push(
      secret(paymentSecrets.name, { [paymentSecrets.key]: `whsec_${randomBytes(32).toString("base64")}` }),
    );
  }
  await applyManifests(cluster.kubectl, JSON.stringify({ apiVersion: "v1", kind: "List", items }));
}

/** One that is there stays: running processes have a new one only when the kubelet has read it again, which takes a minute or more. */
async function hasSecret(cluster: Cluster, name: string): Promise<boolean> {
  const found = await cluster.kubectl([
    ...["get", "secret", name, "--namespace", systemNamespace, "--ignore-not-found", "-o", "name"],
  ]);
  return found.trim() !== "";
}

/** What the chart needs of builds. The builder's image is known before it is built. */
export async function buildsOfChart(
  registry: BuildsRegistryAccess,
  git: { host: string; caFile: string },
  hookUrl: string | undefined,
  { builder, bases }: Pick<ImageSources, "bases" | "builder">,
): Promise<BuildsOfChart> {
  const names = bases.map(({ name, tag }) => `${name}:${tag}`);
  return {
    image: await builder.reference(),
    registry: { host: registry.host, ca: await readFile(registry.caFile, "utf8") },
    git: { host: git.host, ca: await readFile(git.caFile, "utf8"), hookUrl },
    baseImages: baseImageValues((name) => (names.includes(name) ? `${registry.host}/${name}` : undefined)),
    ca: await buildAuthorities(),
    toolsSecret: buildToolsSecret,
  };
}

/**
 * Builds the images that builds start from and that they run in, or finds them built: those go to the registry of builds,
 * this one to where the platform's own go. Answers the reference of the builder's image.
 */
export async function deliverBuildImages(
  cluster: Cluster,
  registry: BuildsRegistryAccess,
  { bases, builder }: Pick<ImageSources, "bases" | "builder">,
): Promise<string> {
  const crane = await ensureBinary("crane");
  const key = await readFile(registry.keyFile, "utf8");
  for (const base of bases) {
    const start = performance.now();
    const image = await base.build();
    const token = mintRegistryToken(
      key,
      "hack-up",
      [{ repository: image.name, actions: ["pull", "push"] }],
      3_600,
    );
    const tag = base.tag ?? image.tag;
    const { pushed } = await pushWithToken(image, tag, { ...registry, token }, crane);
    if (pushed) {
      say(`${image.name}:${tag} delivered in ${seconds(performance.now() - start)}`);
    }
  }
  const start = performance.now();
  const image = await builder.build();
  const reference = await deliver(cluster, { name: "builder", deliver: "import" }, image);
  if (image.built) {
    say(`builder added to the image cache in ${seconds(performance.now() - start)}`);
  }
  return reference;
}
