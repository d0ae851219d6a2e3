import type { ImageRecipe } from "../build.ts";
import { goBase } from "./go.ts";
import { nodeBase } from "./node.ts";
import { baseConfig, osLayer } from "./os.ts";
import { pythonBase } from "./python.ts";
import { staticBase } from "./static.ts";

/** Debian alone, for programs that contain all they need. */
function debianBase(): ImageRecipe {
  return { name: "base/debian", version: "13", layers: [osLayer()], config: baseConfig() };
}

/** The images that builds start from. The registry has each as `<name>:<version>`: `base/node:24`. */
export function baseImages(): ImageRecipe[] {
  return [debianBase(), nodeBase("24"), nodeBase("22"), pythonBase(), goBase("1.25"), staticBase()];
}

/** What a runtime's version is compiled with and what it runs in, as the builder's settings name them. */
type BaseImageValue = string | { build?: string; run: string };

/** The builder's setting of base images for a registry that has these. */
export function baseImageValues(host: string): Record<string, Record<string, BaseImageValue>> {
  const image = (name: string): string => `${host}/base/${name}`;
  return {
    node: { "24": image("node:24"), "22": image("node:22") },
    python: { "3.13": image("python:3.13") },
    go: { "1.25": { build: image("go:1.25"), run: image("debian:13") } },
    static: { default: image("static:1") },
  };
}
