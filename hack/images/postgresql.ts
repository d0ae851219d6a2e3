import { chmod, chown, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { contentHash } from "../lib/hash.ts";
import type { ImageRecipe } from "./build.ts";
import { accounts, debianLayer } from "./debian.ts";
import { writeFiles } from "./files.ts";
import { addPatroni, patroniPackages, patroniRevision } from "./patroni.ts";
import { addPostgresql16, revisionOf16 } from "./postgresql-16.ts";
import { linkBusybox } from "./samples.ts";

/** The user of upstream's Debian images, so that either image reads the other's volume. */
export const postgresqlUser = 999;

/** Debian's releases by the major version that they carry; none carries 16. */
const suites = { "15": "bookworm", "16": "trixie", "17": "trixie", "18": "forky" } as const;
export type PostgresqlMajor = keyof typeof suites;

/** What the dependencies contain for installation scripts, for init systems and for JIT compilation (see below). */
const without = new RegExp(
  `^(${[
    "perl|perl-.*|lib.*-perl|libperl.*|libgdbm.*|libdb5.*|dpkg|tar|debconf|libdebconf.*|usrmerge|init-system-helpers",
    "sysvinit-utils|passwd|adduser|base-passwd|login.defs|libpam-modules.*|libsemanage.*|libsepol.*|lsb-base|netbase",
    "postgresql-common.*|postgresql-client-common|openssl|openssl-provider-legacy|ssl-cert|sensible-utils|ucf|locales",
    "libc-l10n|libllvm.*|libz3.*|libbsd0|libmd0|procps|libproc2.*|systemd|libsystemd-shared|libblkid1|libmount1",
    "gcc-.*-base|libc-gconv-.*|media-types|libtirpc.*|libnsl2|python3-colorama",
  ].join("|")})$`,
);

/** PostgreSQL run by Patroni; docs/databases.md states what such an image has. */
export async function postgresql(major: PostgresqlMajor): Promise<ImageRecipe> {
  const files = accounts("postgres", postgresqlUser, "/var/lib/postgresql");
  const extra = major === "16" ? await revisionOf16() : "";
  // The server from npm has its own libraries, ICU among them, but not that of C++.
  const server = major === "16" ? ["libstdc++6"] : [`postgresql-${major}`];
  const layer = debianLayer({
    name: `postgresql-${major}`,
    suite: suites[major],
    packages: [...server, ...patroniPackages, "busybox-static", "libc-bin", "tzdata"],
    without,
    revision: contentHash(["1", JSON.stringify(files), patroniRevision, extra]),
    finish: async (root, scratch) => {
      await linkBusybox(root);
      await writeFiles(root, files);
      if (major === "16") {
        await addPostgresql16(root, scratch);
      }
      await removeJit(join(root, "usr/lib/postgresql", major, "lib"));
      await addPatroni(root, scratch);
      await mkdir(join(root, "tmp"), { recursive: true });
      await chmod(join(root, "tmp"), 0o1777);
      for (const folder of ["var/lib/postgresql", "var/lib/postgresql/data", "var/run/postgresql"]) {
        await mkdir(join(root, folder), { recursive: true });
        await chown(join(root, folder), postgresqlUser, postgresqlUser);
      }
    },
  });
  return {
    name: "slipway/postgresql",
    version: major,
    layers: [layer],
    config: {
      cmd: ["patroni", "/etc/patroni/patroni.yml"],
      env: { PATH: `/usr/lib/postgresql/${major}/bin:/usr/bin:/bin`, LANG: "C.UTF-8" },
      user: `${postgresqlUser}:${postgresqlUser}`,
      ports: [5432, 8008],
    },
  };
}

/** Without LLVM, which is larger than all the rest, its provider must be removed too: PostgreSQL then works without JIT. */
async function removeJit(libraries: string): Promise<void> {
  for (const name of await readdir(libraries)) {
    if (/^(llvmjit.*|bitcode)$/.test(name)) {
      await rm(join(libraries, name), { recursive: true });
    }
  }
}
