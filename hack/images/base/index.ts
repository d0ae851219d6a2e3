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

/** What each version of a runtime is compiled with and runs in, as names in the registry. */
const RUNTIMES: Record<string, Record<string, BaseImageValue>> = {
  node: { "24": "base/node:24", "22": "base/node:22" },
  python: { "3.13": "base/python:3.13" },
  go: { "1.25": { build: "base/go:1.25", run: "base/debian:13" } },
  static: { default: "base/static:1" },
};

/**
 * The builder's setting of base images.
 * @param referenceOf where an image is, by its name: `base/node:24`; undefined where there is none, as in an older release
 */
export function baseImageValues(
  referenceOf: (name: string) => string | undefined,
): Record<string, Record<string, BaseImageValue>> {
  const located = (value: BaseImageValue): BaseImageValue | undefined => {
    if (typeof value === "string") {
      return referenceOf(value);
    }
    const [build, run] = [value.build && referenceOf(value.build), referenceOf(value.run)];
    return run === undefined || (value.build !== undefined && build === undefined)
      ? undefined
      : { build, run };
  };
  const offered = Object.entries(RUNTIMES).map(([runtime, versions]) => {
    const known = Object.entries(versions).flatMap(([version, value]) => {
      const found = located(value);
      return found === undefined ? [] : [[version, found] as const];
    });
    return [runtime, Object.fromEntries(known)] as const;
  });
  return Object.fromEntries(offered.filter(([, versions]) => Object.keys(versions).length > 0));
}
