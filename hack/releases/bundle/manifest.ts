/** What a bundle says of itself: `release.json`. Pure. */
import { databaseTypes } from "@slipway/crds";
import { z } from "zod";
import type { BuiltImage, StackImage } from "../../images/index.ts";

/** Files and folders of a bundle. */
export const BUNDLE = {
  /** This module's. */
  manifest: "release.json",
  /** An OCI image layout with every image and the chart, by `org.opencontainers.image.ref.name`. */
  images: "images",
  /** Every image of the platform by its digest, a line each. */
  imageList: "images.txt",
  chart: "chart",
  definitions: "crds",
  /** Sources of the release, as `git archive` has them. */
  source: "source.tar.gz",
  /** Their npm packages, as package-lock.json names them, with Node. */
  modules: "modules.tar.gz",
  /** Programs of the embedded cluster, as the cache of built programs has them. */
  programs: "programs",
  materials: "sbom",
  provenance: "provenance.intoto.json",
  checksums: "SHA256SUMS",
  signature: "SHA256SUMS.sig",
} as const;

const image = z.object({
  /** Repository, as in `slipway/operator`. */
  name: z.string().min(1),
  tag: z.string().min(1),
  /** By which container runtimes of the embedded cluster know it. */
  reference: z.string().min(1),
  /** Of its manifest in the layout. */
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
});
export type BundledImage = z.infer<typeof image>;

const stackImages = {
  operator: image,
  apiServer: image,
  ledger: image,
  valkey: image,
  analytics: image,
  sampleHttp: image,
  sampleHttpV2: image,
  sampleJob: image,
} satisfies Record<StackImage["name"], typeof image>;

const manifest = z.object({
  format: z.literal(1),
  version: z.string().regex(/^\d+\.\d+\.\d+$/),
  /** That it was made from. */
  commit: z.string().regex(/^[0-9a-f]{40}$/),
  images: z.object(stackImages),
  databases: z.array(
    z.object({
      engine: z.enum(databaseTypes),
      version: z.string(),
      /** Whether a stack has it that has one version of each engine. */
      isDefault: z.boolean(),
      uid: z.int(),
      gid: z.int(),
      runs: z.string().optional(),
      features: z.record(z.string(), z.boolean()).optional(),
      image,
    }),
  ),
  builder: image,
  /** What builds start from, by the name that they have in the registry of builds: `base/node:24`. */
  bases: z.array(z.object({ tag: z.string(), image })),
});

export type ReleaseManifest = z.infer<typeof manifest>;

/** @throws Error that names the first member that is wrong */
export function parseManifest(text: string): ReleaseManifest {
  const parsed = manifest.safeParse(JSON.parse(text));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new Error(`${BUNDLE.manifest}: ${issue?.path.join(".")}: ${issue?.message}`);
  }
  return parsed.data;
}

/** Every image of a release once, in the order of their names. */
export function imagesOf({ images, databases, builder, bases }: ReleaseManifest): BundledImage[] {
  const all = [
    ...Object.values(images),
    ...databases.map((one) => one.image),
    builder,
    ...bases.map((one) => one.image),
  ];
  const byReference = new Map(all.map((one) => [one.reference, one]));
  return [...byReference.values()].sort((a, b) => (a.reference < b.reference ? -1 : 1));
}

/** The name of the chart in the layout, and in a registry. */
export const chartName = ({ version }: Pick<ReleaseManifest, "version">): string =>
  `charts/slipway:${version}`;

/** The name of an image in the layout. */
export const layoutName = ({ name, tag }: Pick<BuiltImage, "name" | "tag">): string => `${name}:${tag}`;
