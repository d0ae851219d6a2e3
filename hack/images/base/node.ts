import { copyFile, mkdir, rename, symlink } from "node:fs/promises";
import { join } from "node:path";
import { contentHash } from "../../lib/hash.ts";
import type { ImageRecipe, Layer } from "../build.ts";
import { packTar } from "../files.ts";
import { nodeBinary } from "../node.ts";
import { installNpm } from "../registries.ts";
import { sourceFile } from "../samples.ts";
import { baseConfig, osLayer } from "./os.ts";

/** Node with npm: 24 is the platform's own binary, 22 comes from npm too. */
export function nodeBase(version: "24" | "22"): ImageRecipe {
  const binary = version === "24" ? nodeBinary() : npmBinary("22");
  return {
    name: "base/node",
    version,
    layers: [osLayer(), npm(), binary],
    config: baseConfig({}, ["node"]),
  };
}

const manifests = (folder: string) =>
  Promise.all(["package.json", "package-lock.json"].map((name) => sourceFile(`base/${folder}/${name}`)));

function npmBinary(version: "22"): Layer {
  return {
    name: `node-${version}`,
    key: async () => contentHash(["base-node", process.arch, ...(await manifests(`node-${version}`))]),
    write: async (tar, scratch) => {
      const [manifest = "", lock = ""] = await manifests(`node-${version}`);
      const modules = join(scratch, "npm");
      await installNpm(manifest, lock, modules);
      const bin = join(scratch, "root/usr/local/bin");
      await mkdir(bin, { recursive: true });
      await copyFile(join(modules, `node_modules/node-linux-${process.arch}/bin/node`), join(bin, "node"));
      await packTar(join(scratch, "root"), tar);
    },
  };
}

/** npm and npx. Other package managers are installed with it, in the version that a repository asks for. */
function npm(): Layer {
  return {
    name: "npm",
    key: async () => contentHash(["base-npm", "1", ...(await manifests("npm"))]),
    write: async (tar, scratch) => {
      const [manifest = "", lock = ""] = await manifests("npm");
      const modules = join(scratch, "npm");
      await installNpm(manifest, lock, modules);
      const local = join(scratch, "root/usr/local");
      for (const folder of ["lib/node_modules", "bin"]) {
        await mkdir(join(local, folder), { recursive: true });
      }
      await rename(join(modules, "node_modules/npm"), join(local, "lib/node_modules/npm"));
      for (const name of ["npm", "npx"]) {
        await symlink(`../lib/node_modules/npm/bin/${name}-cli.js`, join(local, "bin", name));
      }
      await packTar(join(scratch, "root"), tar, ["*.md", "./usr/local/lib/node_modules/npm/docs"]);
    },
  };
}
