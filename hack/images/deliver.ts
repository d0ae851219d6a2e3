import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { dirname, join } from "node:path";
import { run } from "../lib/exec.ts";
import { createWhole } from "../lib/files.ts";
import type { BuiltImage } from "./build.ts";
import { buildah, imageCache, scratchRoot } from "./store.ts";

/** A registry and the CA that signs its certificate. */
export interface Registry {
  /** `host:port` as this machine reaches it. */
  host: string;
  caFile: string;
  /** For a registry that wants one: a token that may pull and push what is delivered. */
  token?: string;
}

export interface PushedImage {
  /** Path and tag below the registry's host: `slipway/sample-http:v1-…`. */
  repositoryTag: string;
  /** Manifest digest, `sha256:…`. */
  digest: string;
  /** False when the registry already had it. */
  pushed: boolean;
}

/** Writes an image as an archive that `ctr images import` and `kind load image-archive` take; layers uncompressed. */
export async function archiveImage(image: BuiltImage, file: string): Promise<void> {
  await rm(file, { force: true });
  await buildah(["push", "--quiet", image.reference, `docker-archive:${file}:${image.reference}`]);
}

/**
 * Brings an image into containerd's namespace for Kubernetes under its own reference, unless it is there.
 * @param address containerd's socket
 * @returns whether it had to be imported
 */
export async function importImage(image: BuiltImage, address: string): Promise<boolean> {
  const ctr = (args: string[]): Promise<string> =>
    run("ctr", ["--address", address, "-n", "k8s.io", "images", ...args]);
  const present = await ctr(["ls", "-q", `name==${image.reference}`]);
  if (present.trim() === image.reference) {
    return false;
  }
  await withScratch(async (scratch) => {
    const archive = join(scratch, "image.tar");
    await archiveImage(image, archive);
    await ctr(["import", archive]);
  });
  return true;
}

/** Puts an image into a registry over TLS, unless the registry has its tag: a tag names its content. */
export async function pushImage(image: BuiltImage, registry: Registry): Promise<PushedImage> {
  const repositoryTag = `${image.name}:${image.tag}`;
  const present = await manifestDigest(image, registry);
  if (present) {
    return { repositoryTag, digest: present, pushed: false };
  }
  await withScratch(async (scratch) => {
    await copyFile(registry.caFile, join(scratch, "ca.crt"));
    const flags = ["--quiet", "--cert-dir", scratch, "--tls-verify=true"];
    await buildah(["push", ...flags, image.reference, `docker://${registry.host}/${repositoryTag}`]);
  });
  const digest = await manifestDigest(image, registry);
  if (!digest) {
    throw new Error(`${registry.host} does not have ${repositoryTag} after a push`);
  }
  return { repositoryTag, digest, pushed: true };
}

/**
 * Puts an image into a registry that takes tokens, by way of an OCI layout, unless it has its tag; then gives it another
 * name there, by which people know it.
 * @param crane path of that program
 */
export async function pushWithToken(
  image: BuiltImage,
  tag: string,
  registry: Registry & { token: string },
  crane: string,
): Promise<PushedImage> {
  const repository = `${registry.host}/${image.name}`;
  const present = await manifestDigest(image, registry);
  const named = await manifestDigest({ name: image.name, tag }, registry);
  if (present && present === named) {
    return { repositoryTag: `${image.name}:${tag}`, digest: present, pushed: false };
  }
  await withScratch(async (scratch) => {
    const config = { auths: { [registry.host]: { registrytoken: registry.token } } };
    await writeFile(join(scratch, "config.json"), JSON.stringify(config), { mode: 0o600 });
    const env = { DOCKER_CONFIG: scratch, SSL_CERT_FILE: registry.caFile, SSL_CERT_DIR: undefined };
    if (!present) {
      await run(crane, ["push", await ociLayout(image), `${repository}:${image.tag}`], { env });
    }
    await run(crane, ["tag", `${repository}:${image.tag}`, tag], { env });
  });
  const digest = await manifestDigest({ name: image.name, tag }, registry);
  if (!digest) {
    throw new Error(`${registry.host} does not have ${image.name}:${tag} after a push`);
  }
  return { repositoryTag: `${image.name}:${tag}`, digest, pushed: true };
}

/** The folder of an image as an OCI layout. Compressing its layers takes seconds: it is kept beside the image cache. */
async function ociLayout(image: BuiltImage): Promise<string> {
  const layout = join(imageCache, "layouts", image.name, image.tag);
  if (!existsSync(layout)) {
    await mkdir(dirname(layout), { recursive: true });
    await createWhole(layout, (draft) =>
      buildah(["push", "--quiet", image.reference, `oci:${draft}:${image.tag}`]),
    );
  }
  return layout;
}

/** The digest under which a registry holds an image's tag; undefined when it holds none. */
async function manifestDigest(
  image: Pick<BuiltImage, "name" | "tag">,
  registry: Registry,
): Promise<string | undefined> {
  const ca = await readFile(registry.caFile);
  const accept =
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json";
  const headers = { accept, ...(registry.token ? { authorization: `Bearer ${registry.token}` } : {}) };
  const url = `https://${registry.host}/v2/${image.name}/manifests/${image.tag}`;
  return new Promise((resolve, reject) => {
    const ask = request(url, { method: "HEAD", ca, headers, timeout: 10_000, agent: false }, (answer) => {
      answer.resume();
      if (answer.statusCode === 404) {
        return resolve(undefined);
      }
      const digest = answer.headers["docker-content-digest"];
      if (answer.statusCode === 200 && typeof digest === "string") {
        return resolve(digest);
      }
      reject(new Error(`${registry.host} answered ${answer.statusCode} for ${image.name}:${image.tag}`));
    });
    ask.on("timeout", () => ask.destroy(new Error(`${registry.host} did not answer within 10 s`)));
    ask.on("error", reject);
    ask.end();
  });
}

async function withScratch(work: (folder: string) => Promise<void>): Promise<void> {
  const scratch = await mkdtemp(join(await scratchRoot(), "deliver-"));
  try {
    await work(scratch);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
