import { chmod, chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { contentHash } from "../lib/hash.ts";
import type { ImageRecipe } from "./build.ts";
import { accounts, debianLayer } from "./debian.ts";
import { writeFiles } from "./files.ts";
import { linkBusybox, sourceFile } from "./samples.ts";

/** The user of upstream's Debian images, so that either image reads the other's volume. */
const uid = 999;
/** The ledger's major version of PostgreSQL. */
export const ledgerMajor = "15";

/**
 * What the dependencies contain for installation scripts, for JIT compilation (switched off below) and for tools
 * that the image has no use for.
 */
const without =
  /^(perl|perl-.*|lib.*-perl|libperl.*|libgdbm.*|libdb.*|dpkg|tar|debconf|usrmerge|init-system-helpers|sysvinit-utils|passwd|adduser|libpam-modules.*|libsemanage.*|libsepol.*|lsb-base|netbase|postgresql-common|postgresql-client-common|openssl|ssl-cert|sensible-utils|ucf|locales|libc-l10n|libllvm.*|libz3.*|libbsd0|libmd0)$/;

/** PostgreSQL for the ledger, keeping the part of the upstream image's contract that the chart uses. */
export async function postgres(): Promise<ImageRecipe> {
  const files = accounts("postgres", uid, "/var/lib/postgresql");
  const scripts = { "usr/bin/docker-entrypoint.sh": await sourceFile("postgres/entrypoint.sh") };
  const layer = debianLayer({
    name: "postgres",
    packages: [`postgresql-${ledgerMajor}`, "busybox-static"],
    without,
    revision: contentHash(["1", JSON.stringify([files, scripts])]),
    finish: async (root) => {
      await linkBusybox(root);
      await writeFiles(root, files);
      await writeFiles(root, scripts, 0o755);
      await mkdir(join(root, "tmp"), { recursive: true });
      await chmod(join(root, "tmp"), 0o1777);
      for (const folder of ["var/lib/postgresql", "var/lib/postgresql/data", "var/run/postgresql"]) {
        await mkdir(join(root, folder), { recursive: true });
        await chown(join(root, folder), uid, uid);
      }
    },
  });
  return {
    name: "slipway/postgres",
    version: ledgerMajor,
    layers: [layer],
    config: {
      entrypoint: ["docker-entrypoint.sh"],
      cmd: ["postgres", "-c", "jit=off"],
      env: {
        PATH: `/usr/lib/postgresql/${ledgerMajor}/bin:/usr/bin:/bin`,
        PGDATA: "/var/lib/postgresql/data",
        LANG: "C.UTF-8",
      },
      user: `${uid}:${uid}`,
      ports: [5432],
      stopSignal: "SIGINT",
    },
  };
}
