import { chmod, chown, mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { contentHash } from "../../lib/hash.ts";
import type { ImageConfig, Layer } from "../build.ts";
import { accounts, debianLayer } from "../debian.ts";
import { caBundle, writeFiles } from "../files.ts";

/** Release of Debian that applications run on; its glibc is what they link to. */
export const baseSuite = "trixie";

/** What applications run as. Their image is theirs to name another user in. */
export const baseUser = 1000;

/** A shell and the tools that scripts of applications expect. */
export const osPackages = [
  "base-files",
  "bash",
  "ca-certificates",
  "coreutils",
  "dash",
  "diffutils",
  "findutils",
  "grep",
  "gzip",
  "hostname",
  "libc-bin",
  "libstdc++6",
  "mawk",
  "netbase",
  "sed",
  "tar",
  "tzdata",
  "xz-utils",
  "zlib1g",
];

/** What only installation scripts need, or nobody. */
export const withoutScripts = /^(debconf|perl.*|libperl.*|openssl|openssl-provider-legacy|gcc-.*-base)$/;

/** The lowest layer of every base image and of the builder: one that a node has once. */
export function osLayer(): Layer {
  const files = accounts("app", baseUser, "/home/app");
  return debianLayer({
    name: "base-os",
    suite: baseSuite,
    packages: osPackages,
    without: withoutScripts,
    revision: contentHash(["1", JSON.stringify(files)]),
    finish: async (root) => {
      await writeFiles(root, { ...files, "etc/ssl/certs/ca-certificates.crt": await caBundle(root) });
      for (const [link, target] of [
        ["sh", "dash"],
        ["awk", "mawk"],
      ] as const) {
        await symlink(target, join(root, "usr/bin", link)).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== "EEXIST") {
            throw error;
          }
        });
      }
      await mkdir(join(root, "tmp"), { recursive: true });
      await chmod(join(root, "tmp"), 0o1777);
      for (const folder of ["app", "home/app"]) {
        await mkdir(join(root, folder), { recursive: true });
        await chown(join(root, folder), baseUser, baseUser);
      }
    },
  });
}

/** The configuration that all base images share. */
export function baseConfig(env: Record<string, string> = {}, cmd: string[] = ["/bin/sh"]): ImageConfig {
  const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  return {
    cmd,
    env: { PATH: path, HOME: "/home/app", LANG: "C.UTF-8", ...env },
    user: `${baseUser}:${baseUser}`,
    workdir: "/app",
  };
}
