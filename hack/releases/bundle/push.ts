/** Pushes a bundle to a registry, from which `helm install oci://…` and the nodes of a cluster pull. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { baseImageValues } from "../../images/base/index.ts";
import { databaseImageValues } from "../../images/databases.ts";
import { run } from "../../lib/exec.ts";
import { say } from "../../lib/steps.ts";
import { extract } from "./layout.ts";
import {
  BUNDLE,
  type BundledImage,
  chartName,
  imagesOf,
  layoutName,
  type ReleaseManifest,
} from "./manifest.ts";
import { readRelease } from "./read.ts";

export interface PushOptions {
  /** Host with a path, where there is one: `registry.example.com/platform`. */
  registry: string;
  /** Path of crane; it logs in as `crane auth login` or `docker login` did. */
  crane: string;
  /** Whether the registry is reached without TLS. */
  plain: boolean;
  /** Public key that the bundle has to be signed with. */
  keyFile: string | undefined;
}

/**
 * Pushes every image and the chart of a bundle, once it is known to be as it was made.
 * @returns the chart's values that name the images there, by digest
 * @throws UserError for a bundle that is not as it was made
 */
export async function pushBundle(folder: string, options: PushOptions): Promise<Record<string, unknown>> {
  const release = await readRelease(folder, options.keyFile);
  for (const name of [...imagesOf(release).map(layoutName), chartName(release)]) {
    await push(join(folder, BUNDLE.images), name, options);
    say(`${options.registry}/${name}`);
  }
  return valuesOf(release, options.registry);
}

/** The chart's values that name a release's images in a registry. Pure. */
export function valuesOf(release: ReleaseManifest, registry: string): Record<string, unknown> {
  const reference = ({ name, digest }: BundledImage): string => `${registry}/${name}@${digest}`;
  const { operator, apiServer, ledger, valkey, analytics } = release.images;
  return {
    images: {
      operator: reference(operator),
      apiServer: reference(apiServer),
      ledger: reference(ledger),
      valkey: reference(valkey),
      analytics: reference(analytics),
    },
    databases: {
      images: databaseImageValues(
        release.databases.map(({ image, ...source }) => ({ source, reference: reference(image) })),
      ),
    },
    builds: {
      image: reference(release.builder),
      baseImages: baseImageValues((name) => {
        const base = release.bases.find(({ image, tag }) => `${image.name}:${tag}` === name);
        return base && reference(base.image);
      }),
    },
  };
}

async function push(layout: string, name: string, { crane, registry, plain }: PushOptions): Promise<void> {
  const scratch = await mkdtemp(join(tmpdir(), "slipway-push-"));
  try {
    await extract(layout, name, join(scratch, "layout"));
    await run(crane, [
      "push",
      ...(plain ? ["--insecure"] : []),
      join(scratch, "layout"),
      `${registry}/${name}`,
    ]);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
