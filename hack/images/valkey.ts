import { chmod, mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { contentHash } from "../lib/hash.ts";
import type { ImageRecipe } from "./build.ts";
import { accounts, debianLayer } from "./debian.ts";
import { writeFiles } from "./files.ts";
import { linkBusybox } from "./samples.ts";

/** The user of upstream's Debian image. */
export const valkeyUser = 999;
const major = "9";

/** What the dependencies contain for init systems, character sets and old ciphers. */
const without =
  /^(gcc-.*-base|libc-gconv-.*|systemd|libsystemd-shared|libblkid1|libmount1|libselinux1|libpcre2-.*|openssl-provider-legacy)$/;

/**
 * Valkey for the platform and for projects, keeping the part of the upstream image's contract that they use:
 * `valkey-server`, `valkey-sentinel` and `valkey-cli` with TLS in the path, a shell, any non-root user, port 6379.
 */
export function valkey(): ImageRecipe {
  const files = accounts("valkey", valkeyUser, "/data");
  const layer = debianLayer({
    name: "valkey",
    suite: "forky",
    packages: ["valkey-server", "valkey-tools", "busybox-static", "libc-bin"],
    without,
    revision: contentHash(["2", JSON.stringify(files)]),
    finish: async (root) => {
      await linkBusybox(root);
      await linkSentinel(root);
      await writeFiles(root, files);
      for (const folder of ["tmp", "data"]) {
        await mkdir(join(root, folder), { recursive: true });
        await chmod(join(root, folder), 0o1777);
      }
    },
  });
  return {
    name: "slipway/valkey",
    version: major,
    layers: [layer],
    config: {
      entrypoint: [],
      cmd: ["valkey-server"],
      env: { PATH: "/usr/bin:/bin" },
      user: `${valkeyUser}:${valkeyUser}`,
      workdir: "/data",
      ports: [6379],
    },
  };
}

/** A Sentinel is the server under another name, which Debian puts into a package of its own. */
async function linkSentinel(root: string): Promise<void> {
  await symlink("valkey-server", join(root, "usr/bin/valkey-sentinel"));
}
