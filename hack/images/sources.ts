/** Where the images of a stack come from: built from these sources, or read from a bundle. */
import { baseImages } from "./base/index.ts";
import { type BuiltImage, buildImage, type ImageRecipe, identifyImage } from "./build.ts";
import { builder } from "./builder.ts";
import { type DatabaseImageSource, databaseImages } from "./databases.ts";
import { images, type StackImage } from "./index.ts";

/** An image that is known before it is there. */
export interface ImageSource {
  reference: () => Promise<string>;
  /** Puts it into the image cache, or finds it there. */
  build: () => Promise<BuiltImage>;
}

export interface ImageSources {
  stack: readonly StackImage[];
  /** All that there are. */
  databases: readonly DatabaseImageSource[];
  builder: ImageSource;
  /** What builds start from, each with the name and tag by which the registry of builds has it: `base/node` and `24`. */
  bases: readonly (ImageSource & { name: string; tag: string | undefined })[];
}

const sourceOf = (recipe: ImageRecipe): ImageSource => ({
  reference: async () => (await identifyImage(recipe)).reference,
  build: () => buildImage(recipe),
});

/** Those that these sources make. */
export const ownImages = (): ImageSources => ({
  stack: images,
  databases: databaseImages("all"),
  builder: sourceOf(builder()),
  bases: baseImages().map((recipe) => ({ ...sourceOf(recipe), name: recipe.name, tag: recipe.version })),
});
