import type { Cluster } from "../cluster/cluster.ts";
import { type BuiltImage, pushImage, type StackImage } from "../images/index.ts";
import { forEachConcurrently } from "../lib/concurrently.ts";
import { say } from "../lib/steps.ts";

/** References, as the nodes pull or have them, by image. */
export type StackImages = Record<StackImage["name"], string>;

/**
 * Builds every image of the stack, or finds it built, and delivers it to the cluster: into the nodes' runtimes, or into the
 * registry that they pull from.
 */
export async function deliverImages(cluster: Cluster, images: readonly StackImage[]): Promise<StackImages> {
  const references: Partial<StackImages> = {};
  // Two at once: each writes to the disk or waits for a registry for half of its time.
  await forEachConcurrently(images, 2, async (image) => {
    const built = await image.build();
    if (built.built) {
      say(`${image.name} added to the image cache`);
    }
    references[image.name] = await deliver(cluster, image, built);
  });
  return references as StackImages;
}

/** Delivers a built image to the cluster. @returns the reference by which the nodes know it */
export async function deliver(
  cluster: Cluster,
  image: Pick<StackImage, "deliver"> & { name: string },
  built: BuiltImage,
): Promise<string> {
  const { registry, importImage } = cluster;
  if (importImage && (image.deliver === "import" || !registry)) {
    await importImage(built);
    return built.reference;
  }
  if (!registry) {
    throw new Error("the cluster takes no images");
  }
  const { repositoryTag, digest, pushed } = await pushImage(built, registry.push);
  if (pushed) {
    say(`${image.name} pushed`);
  }
  // The platform's own images are pinned; a sample is named as a person would name it.
  if (image.deliver === "import") {
    return `${registry.pull}/${built.name}@${digest}`;
  }
  return `${registry.pull}/${repositoryTag}`;
}
