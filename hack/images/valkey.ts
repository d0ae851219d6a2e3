import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { contentHash } from "../lib/hash.ts";
import type { ImageRecipe } from "./build.ts";
import { accounts, debianLayer } from "./debian.ts";
import { writeFiles } from "./files.ts";

/** The user of upstream's Debian image. */
const uid = 999;
const major = "9";

/** What the dependencies bring along for init systems, character sets and old ciphers. */
const without =
  /^(gcc-.*-base|libc-gconv-.*|systemd|libsystemd-shared|libblkid1|libmount1|libselinux1|libpcre2-.*|openssl-provider-legacy)$/;

/**
 * Valkey, keeping the part of the upstream image's contract that the chart uses: `valkey-server` and `valkey-cli` in the
 * path, any non-root user, port 6379. There is no shell.
 */
export function valkey(): ImageRecipe {
  const files = accounts("valkey", uid, "/data");
  const layer = debianLayer({
    name: "valkey",
    suite: "forky",
    packages: ["valkey-server", "valkey-tools"],
    without,
    revision: contentHash(["1", JSON.stringify(files)]),
    finish: async (root) => {
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
      user: `${uid}:${uid}`,
      workdir: "/data",
      ports: [6379],
    },
  };
}
