import { chmod, chown, mkdir, readdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { contentHash } from "../lib/hash.ts";
import type { ImageRecipe } from "./build.ts";
import { accounts, debianLayer } from "./debian.ts";
import { writeFiles } from "./files.ts";
import { linkBusybox } from "./samples.ts";

/** The user of upstream's image. */
export const mariadbUser = 999;

/** Debian's releases by the major version that they carry: 10.11 and 11.8. */
const suites = { "10": "bookworm", "11": "trixie" } as const;
export type MariadbMajor = keyof typeof suites;

const packages = [
  "mariadb-server",
  "mariadb-client",
  "mariadb-backup",
  "galera-4",
  // What the scripts that copy a node's data to another one call: they are written for these, not for busybox's.
  "bash",
  "coreutils",
  "findutils",
  "gawk",
  "grep",
  "iproute2",
  "lsof",
  "openssl",
  "procps",
  "sed",
  "socat",
  "busybox-static",
  "libc-bin",
  "tzdata",
];

/** What the dependencies contain for installation scripts, for init systems and for tools written in Perl. */
const without = new RegExp(
  `^(${[
    "perl|perl-.*|lib.*-perl|libperl.*|libgdbm.*|libdb5.*|dpkg|tar|debconf|libdebconf.*|usrmerge|init-system-helpers",
    "passwd|adduser|base-passwd|login.defs|libpam-modules.*|libsemanage.*|libsepol.*|debianutils|psmisc|rsync|libpopt0",
    "gcc-.*-base|openssl-provider-legacy",
  ].join("|")})$`,
);

/** The configuration that the server reads by default: what is mounted, and nothing of Debian's. */
const configuration = "[client-server]\nsocket = /run/mysqld/mysqld.sock\n\n!includedir /etc/mysql/conf.d/\n";

/** MariaDB with Galera; docs/databases.md states what such an image has. */
export function mariadb(major: MariadbMajor): ImageRecipe {
  const files = { ...accounts("mysql", mariadbUser, "/var/lib/mysql"), "etc/mysql/my.cnf": configuration };
  const layer = debianLayer({
    name: `mariadb-${major}`,
    suite: suites[major],
    packages,
    without,
    revision: contentHash(["1", JSON.stringify(files)]),
    finish: async (root) => {
      await symlink("gawk", join(root, "usr/bin/awk"));
      await linkBusybox(root);
      await rm(join(root, "etc/mysql"), { recursive: true });
      await writeFiles(root, files);
      await mkdir(join(root, "etc/mysql/conf.d"));
      await keepEnglish(join(root, "usr/share"));
      await mkdir(join(root, "tmp"), { recursive: true });
      await chmod(join(root, "tmp"), 0o1777);
      for (const folder of ["var/lib/mysql", "run/mysqld"]) {
        await mkdir(join(root, folder), { recursive: true });
        await chown(join(root, folder), mariadbUser, mariadbUser);
      }
    },
  });
  return {
    name: "slipway/mariadb",
    version: major,
    layers: [layer],
    config: {
      cmd: ["mariadbd"],
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C.UTF-8" },
      user: `${mariadbUser}:${mariadbUser}`,
      ports: [3306, 4444, 4567, 4568],
    },
  };
}

/** Messages in two dozen languages are a tenth of the image. */
async function keepEnglish(share: string): Promise<void> {
  for (const name of ["mysql", "mariadb"]) {
    const folder = join(share, name);
    const entries = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") {
        return [];
      }
      throw error;
    });
    for (const entry of entries.filter(
      (one) => one.isDirectory() && !/^(english|charsets)$/.test(one.name),
    )) {
      const files = await readdir(join(folder, entry.name));
      if (files.every((file) => file === "errmsg.sys")) {
        await rm(join(folder, entry.name), { recursive: true });
      }
    }
  }
}
