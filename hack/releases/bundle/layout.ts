/** The OCI image layout of a bundle: every image of the platform, and its chart as Helm keeps charts in a registry. */
import { createHash, randomBytes } from "node:crypto";
import { copyFile, mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { BuiltImage } from "../../images/index.ts";
import { buildah } from "../../images/store.ts";
import { runDir } from "../../lib/paths.ts";
import { layoutName } from "./manifest.ts";

const REF_NAME = "org.opencontainers.image.ref.name";
const MANIFEST = "application/vnd.oci.image.manifest.v1+json";

const descriptor = z.object({
  mediaType: z.string(),
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  size: z.int(),
  annotations: z.record(z.string(), z.string()).optional(),
});
type Descriptor = z.infer<typeof descriptor>;
const index = z.object({ schemaVersion: z.literal(2), manifests: z.array(descriptor) });

async function readIndex(layout: string): Promise<z.infer<typeof index>> {
  return index.parse(JSON.parse(await readFile(join(layout, "index.json"), "utf8")));
}

/** Adds an image of the image cache to a layout. @returns the digest of its manifest */
export async function addImage(layout: string, image: BuiltImage): Promise<string> {
  const name = layoutName(image);
  await buildah(["push", "--quiet", image.reference, `oci:${layout}:${name}`]);
  return digestOf(layout, name);
}

/** The digest of what a layout has under a name. @throws Error when it has nothing */
export async function digestOf(layout: string, name: string): Promise<string> {
  return (await descriptorOf(layout, name)).digest;
}

async function descriptorOf(layout: string, name: string): Promise<Descriptor> {
  const { manifests } = await readIndex(layout);
  const found = manifests.find(({ annotations }) => annotations?.[REF_NAME] === name);
  if (found === undefined) {
    throw new Error(`${layout} has no ${name}`);
  }
  return found;
}

/** The digest of the configuration of an image in a layout, by the digest of its manifest. */
export async function configOf(layout: string, { digest }: { digest: string }): Promise<string> {
  return (await readManifest(layout, digest)).config.digest;
}

async function readManifest(layout: string, digest: string) {
  const text = await readFile(join(layout, blobPath(digest)), "utf8");
  return z.object({ config: descriptor, layers: z.array(descriptor) }).parse(JSON.parse(text));
}

const blobPath = (digest: string): string => join("blobs/sha256", digest.replace("sha256:", ""));

/** Puts an image of a layout into the image cache, under its reference. */
export async function loadImage(layout: string, image: Omit<BuiltImage, "built">): Promise<void> {
  // buildah makes a name of the path, and names have no capitals.
  const path = join(runDir, `layout-${randomBytes(8).toString("hex")}`);
  await mkdir(runDir, { recursive: true });
  await symlink(layout, path);
  try {
    const id = await buildah(["pull", "--quiet", `oci:${path}:${layoutName(image)}`]);
    await buildah(["tag", id, image.reference]);
    await buildah(["rmi", `localhost${path}`]);
  } finally {
    await rm(path);
  }
}

/**
 * Adds a packed chart, as `helm push` does: https://helm.sh/docs/topics/registries/#helm-chart-manifest
 * @param metadata its Chart.yaml
 */
export async function addChart(
  layout: string,
  { archive, name, metadata }: { archive: string; name: string; metadata: unknown },
): Promise<void> {
  const config = await addBlob(layout, JSON.stringify(metadata), "application/vnd.cncf.helm.config.v1+json");
  const content = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
  const layer = await addBlob(layout, await readFile(archive), content);
  const manifest = JSON.stringify({ schemaVersion: 2, mediaType: MANIFEST, config, layers: [layer] });
  const entry = { ...(await addBlob(layout, manifest, MANIFEST)), annotations: { [REF_NAME]: name } };
  const known = await readIndex(layout);
  await writeFile(
    join(layout, "index.json"),
    JSON.stringify({ ...known, manifests: [...known.manifests, entry] }),
  );
}

async function addBlob(layout: string, content: string | Buffer, mediaType: string): Promise<Descriptor> {
  const digest = createHash("sha256").update(content).digest("hex");
  await writeFile(join(layout, "blobs/sha256", digest), content);
  return { mediaType, digest: `sha256:${digest}`, size: Buffer.byteLength(content) };
}

/**
 * Writes a layout with one image of another, which is what programs that push a whole layout take.
 * @param folder to be created
 */
export async function extract(layout: string, name: string, folder: string): Promise<void> {
  const wanted = await descriptorOf(layout, name);
  await mkdir(join(folder, "blobs/sha256"), { recursive: true });
  const manifest = await readManifest(layout, wanted.digest);
  for (const { digest } of [wanted, manifest.config, ...manifest.layers]) {
    await copyFile(join(layout, blobPath(digest)), join(folder, blobPath(digest)));
  }
  await writeFile(join(folder, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  await writeFile(join(folder, "index.json"), JSON.stringify({ schemaVersion: 2, manifests: [wanted] }));
}
