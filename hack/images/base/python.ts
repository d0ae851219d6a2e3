import { rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { ImageRecipe } from "../build.ts";
import { debianLayer } from "../debian.ts";
import { baseConfig, baseSuite, osLayer, osPackages, withoutScripts } from "./os.ts";

const version = "3.13";

/** Parts of Python's library that are for developers of Python or for screens. */
const leftOut = ["test", "idlelib", "lib2to3", "tkinter", "turtledemo", "pydoc_data", "EXTERNALLY-MANAGED"];

/** Debian's Python with pip and venv; pip may install beside Debian's packages, for an image is nobody else's. */
export function pythonBase(): ImageRecipe {
  const python = debianLayer({
    name: "base-python",
    suite: baseSuite,
    packages: [`python${version}`, "python3", "python3-pip", "python3-venv", "media-types"],
    below: osPackages,
    without: withoutScripts,
    revision: "1",
    finish: async (root) => {
      for (const part of leftOut) {
        await rm(join(root, `usr/lib/python${version}`, part), { recursive: true, force: true });
      }
      await symlink("python3", join(root, "usr/bin/python"));
    },
  });
  return {
    name: "base/python",
    version,
    layers: [osLayer(), python],
    config: baseConfig({ PYTHONUNBUFFERED: "1", PIP_DISABLE_PIP_VERSION_CHECK: "1", PIP_NO_INPUT: "1" }, [
      "python3",
    ]),
  };
}
