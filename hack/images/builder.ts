import { copyFile, mkdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { binaryPath, ensureBinary } from "../cluster/binaries.ts";
import type { BinaryName } from "../cluster/programs.ts";
import { contentHash } from "../lib/hash.ts";
import { baseSuite, baseUser, osLayer, osPackages, withoutScripts } from "./base/os.ts";
import type { ImageRecipe, Layer } from "./build.ts";
import { COMPILE_CACHE, compileCacheLayer } from "./compile-cache.ts";
import { debianLayer } from "./debian.ts";
import { packTar, writeFiles } from "./files.ts";
import { appLayers, nodeBinary } from "./node.ts";

/** What its containers run as. */
export const builderUser = baseUser;

/** The numbers that steps of a build may use beside the user's own, inside the pod's user namespace. */
const subordinate = "app:100000:65536\n";

/** What buildah would have for networks, signatures and accounts of its own: steps of builds have the pod's network, and no images are signed. */
const withoutNetworks =
  /^(adduser|base-passwd|containernetworking-plugins|dirmngr|gnupg.*|gpg.*|init-system-helpers|iptables|libip[46]tc.*|libmnl0|libnetfilter.*|libnf.*|libpam-modules.*|libreadline.*|libxtables.*|login\.defs|passwd|pinentry.*|readline-common)$/;

const WORKDIR = "/app";
const MAIN = "builder/src/main.ts";

const tools: BinaryName[] = ["buildkitd", "buildctl", "rootlesskit", "crane"];

/**
 * The image that all steps of a build run in: git, BuildKit for a user without rights, buildah, crane, and the builder's own program
 * at /app/builder. Its user namespaces are set up by two programs with a capability each, for a setuid bit is worth
 * nothing where the file system is mounted without them.
 */
export function builder(): ImageRecipe {
  const git = debianLayer({
    name: "builder-engines",
    suite: baseSuite,
    packages: ["git", "runc", "uidmap", "buildah"],
    below: osPackages,
    without: new RegExp(`${withoutScripts.source}|${withoutNetworks.source}`),
    revision: contentHash(["1", subordinate]),
    capabilities: { "usr/bin/newuidmap": "cap_setuid=ep", "usr/bin/newgidmap": "cap_setgid=ep" },
    finish: (root) => writeFiles(root, { "etc/subuid": subordinate, "etc/subgid": subordinate }),
  });
  return {
    name: "slipway/builder",
    layers: [
      osLayer(),
      git,
      nodeBinary(),
      toolsLayer(),
      ...appLayers(["crds", "builder"]),
      // Without an argument it prints its usage, after loading all its modules.
      compileCacheLayer(builderUser, WORKDIR, [[MAIN]]),
    ],
    config: {
      cmd: ["node", MAIN],
      env: {
        PATH: "/usr/local/bin:/usr/bin:/bin",
        HOME: "/home/app",
        LANG: "C.UTF-8",
        NODE_ENV: "production",
        NODE_COMPILE_CACHE: COMPILE_CACHE,
      },
      user: `${builderUser}:${builderUser}`,
      workdir: WORKDIR,
    },
  };
}

function toolsLayer(): Layer {
  return {
    name: "builder-tools",
    // The binaries' folders are named after what they were built from.
    key: async () =>
      contentHash(["builder-tools", "1", ...tools.map((name) => basename(dirname(binaryPath(name))))]),
    write: async (tar, scratch) => {
      const bin = join(scratch, "root/usr/local/bin");
      await mkdir(bin, { recursive: true });
      for (const name of tools) {
        await copyFile(await ensureBinary(name), join(bin, name));
      }
      await packTar(join(scratch, "root"), tar);
    },
  };
}
