import { copyFile, mkdir, readFile, rm, rmdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { run } from "../lib/exec.ts";
import { contentHash } from "../lib/hash.ts";
import { root } from "../lib/paths.ts";
import type { ImageRecipe, Layer } from "./build.ts";
import { BUNDLES, writeBundles } from "./bundle.ts";
import { accounts, debianLayer } from "./debian.ts";
import { caBundle, hashFiles, listFiles, packTar, writeFiles } from "./files.ts";
import {
  apiServerConfig,
  developersFiles,
  installFlags,
  nodeUser,
  operatorConfig,
  platformRooms,
  testFolders,
} from "./processes.ts";

/** Both processes run from the same layers; only the command differs. */
export function operator(): ImageRecipe {
  return { name: "slipway/operator", layers, config: operatorConfig };
}

export function apiServer(): ImageRecipe {
  return { name: "slipway/api-server", layers, config: apiServerConfig };
}

/** The C and C++ run-time libraries that Node links to, and the CAs that a tenant's endpoints are checked against. */
export function libraries(): Layer {
  const files = accounts("slipway", nodeUser, "/app");
  return debianLayer({
    name: "node-libraries",
    packages: ["libc6", "libgcc-s1", "libstdc++6", "ca-certificates"],
    without: /^(debconf|openssl|libssl3.*|libssl-.*)$/,
    revision: contentHash(["1", JSON.stringify(files)]),
    finish: async (folder) => {
      await writeFiles(folder, { ...files, "etc/ssl/certs/ca-certificates.crt": await caBundle(folder) });
      await rm(join(folder, "usr/share/ca-certificates"), { recursive: true });
      await mkdir(join(folder, "tmp"));
      await run("chmod", ["1777", join(folder, "tmp")]);
    },
  });
}

/** The `node` binary that the npm package of that name carries, at the version in the root package.json. */
export function nodeBinary(): Layer {
  const manifest = createRequire(join(root, "package.json")).resolve("node/package.json");
  return {
    name: "node",
    key: async () => contentHash(["node", process.arch, await readFile(manifest, "utf8")]),
    write: async (tar, scratch) => {
      const bin = join(scratch, "root/usr/local/bin");
      await mkdir(bin, { recursive: true });
      await copyFile(join(dirname(manifest), "bin/node"), join(bin, "node"));
      await packTar(join(scratch, "root"), tar);
    },
  };
}

/** /app/node_modules: what the rooms need at run time, exactly as package-lock.json says. */
function dependencies(rooms: string[]): Layer {
  return {
    name: "dependencies",
    key: async () =>
      contentHash(["dependencies", "4", rooms.join(" "), await hashFiles(root, await manifests())]),
    write: async (tar, scratch) => {
      const app = join(scratch, "root/app");
      for (const path of await manifests()) {
        await mkdir(dirname(join(app, path)), { recursive: true });
        await copyFile(join(root, path), join(app, path));
      }
      const only = rooms.flatMap((room) => ["--workspace", room]);
      // Without the root's own dependencies: those are the Node binary, which has a layer of its own.
      await run("npm", ["ci", ...installFlags, "--prefer-offline", ...only], {
        cwd: app,
        env: { NODE_ENV: undefined },
      });
      // The package files have done their work: the rooms' own come with the sources.
      for (const path of await manifests()) {
        await rm(join(app, path));
        for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
          await rmdir(join(app, folder)).catch(ignoreNotEmpty);
        }
      }
      await packTar(join(scratch, "root"), tar, developersFiles);
    },
  };
}

function ignoreNotEmpty(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOTEMPTY") {
    throw error;
  }
}

/** The package files that decide what `npm ci` installs; every workspace's, or npm finds the lock file wanting. */
async function manifests(): Promise<string[]> {
  const main = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { workspaces: string[] };
  return ["package.json", "package-lock.json", ...main.workspaces.map((room) => `${room}/package.json`)];
}

/** /app/<room>: the sources as they are, which Node runs without a build. */
function sources(rooms: string[]): Layer {
  const wanted = (path: string): boolean =>
    !testFolders.includes(basename(path)) && !/\.test\.ts$/.test(path);
  const list = async (): Promise<string[]> => {
    const found = await Promise.all(
      rooms.map(async (room) => (await listFiles(join(root, room), wanted)).map((path) => join(room, path))),
    );
    return [...found.flat(), "package.json"];
  };
  return {
    name: "sources",
    key: async () => contentHash(["sources", rooms.join(" "), await hashFiles(root, await list())]),
    write: async (tar, scratch) => {
      const app = join(scratch, "root/app");
      for (const path of await list()) {
        await mkdir(dirname(join(app, path)), { recursive: true });
        await copyFile(join(root, path), join(app, path));
      }
      await packTar(join(scratch, "root"), tar);
    },
  };
}

/** /app/dist: the processes' bundles, of the same sources and dependencies. */
function bundles(): Layer {
  const [installed, source] = appLayers(platformRooms);
  return {
    name: "bundles",
    key: async () =>
      contentHash([
        "bundles",
        "1",
        await installed.key(),
        await source.key(),
        await hashFiles(root, ["hack/images/bundle.ts"]),
      ]),
    write: async (tar, scratch) => {
      await writeBundles(root, join(scratch, "root/app", BUNDLES));
      await packTar(join(scratch, "root"), tar);
    },
  };
}

/** /app with some of the rooms and what they need, for an image that has Node. */
export function appLayers(rooms: string[]): [Layer, Layer] {
  return [dependencies(rooms), sources(rooms)];
}

const layers = [libraries(), nodeBinary(), ...appLayers(platformRooms), bundles()];
