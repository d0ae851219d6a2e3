import { copyFile, mkdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { binaryPath, ensureBinary } from "../cluster/binaries.ts";
import { contentHash } from "../lib/hash.ts";
import { baseSuite, osLayer, osPackages, withoutScripts } from "./base/os.ts";
import type { ImageRecipe, Layer } from "./build.ts";
import { compileCacheLayer } from "./compile-cache.ts";
import { debianLayer } from "./debian.ts";
import { packTar, writeFiles } from "./files.ts";
import { appLayers, nodeBinary } from "./node.ts";
import {
  BUILDER_MAIN,
  builderCapabilities,
  builderConfig,
  builderPackages,
  builderRooms,
  builderTools,
  builderUser,
  subordinateIds,
  WORKDIR,
} from "./processes.ts";

/** What buildah would have for networks, signatures and accounts of its own: steps of builds have the pod's network, and no images are signed. */
const withoutNetworks =
  /^(adduser|base-passwd|containernetworking-plugins|dirmngr|gnupg.*|gpg.*|init-system-helpers|iptables|libip[46]tc.*|libmnl0|libnetfilter.*|libnf.*|libpam-modules.*|libreadline.*|libxtables.*|login\.defs|passwd|pinentry.*|readline-common)$/;

const tools = Object.keys(builderTools) as (keyof typeof builderTools)[];

/**
 * The image that all steps of a build run in: git, BuildKit for a user without rights, buildah, crane, and the builder's own program
 * at /app/builder.
 */
export function builder(): ImageRecipe {
  const git = debianLayer({
    name: "builder-engines",
    suite: baseSuite,
    packages: builderPackages,
    below: osPackages,
    without: new RegExp(`${withoutScripts.source}|${withoutNetworks.source}`),
    revision: contentHash(["1", subordinateIds]),
    capabilities: builderCapabilities,
    finish: (root) => writeFiles(root, { "etc/subuid": subordinateIds, "etc/subgid": subordinateIds }),
  });
  return {
    name: "slipway/builder",
    layers: [
      osLayer(),
      git,
      nodeBinary(),
      toolsLayer(),
      ...appLayers(builderRooms),
      compileCacheLayer(builderUser, WORKDIR, [[BUILDER_MAIN]]),
    ],
    config: builderConfig,
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
