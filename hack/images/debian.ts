import { existsSync } from "node:fs";
import { chmod, mkdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../lib/exec.ts";
import { contentHash } from "../lib/hash.ts";
import { aptOfMachine, aptOfSuite } from "./apt.ts";
import type { Layer } from "./build.ts";
import { packTar, packTarWithCapabilities } from "./files.ts";
import { listArchives, packagesIn } from "./packages.ts";

export interface DebianRoot {
  name: string;
  /** Packages by name; their dependencies come along. */
  packages: string[];
  /** Debian release to take them from, such as `forky`; the machine's own unless given. */
  suite?: string;
  /** Dependencies to leave out: what only a package's installation scripts need. */
  without?: RegExp;
  /** Packages of a layer below, which has these and all that they need already. */
  below?: string[];
  /** Capabilities of files, as `setcap` takes them, by path: in the place of a bit by which they would run as root. */
  capabilities?: Record<string, string>;
  /** Completes the unpacked root; `scratch` is removed afterwards. */
  finish?: (root: string, scratch: string) => Promise<void>;
  /** Stands for `finish` in the layer's key: change it when `finish` changes. */
  revision: string;
}

const unneeded = ["doc", "man", "info", "lintian", "locale", "bash-completion", "bug", "perl5", "perl"].map(
  (name) => `usr/share/${name}`,
);

/** What a layer's scratch folder has. */
const [ROOT, ARCHIVES] = ["root", "debs"];

/**
 * A layer with Debian packages from the sources that this machine itself uses, of its release or another one, unpacked
 * without running their scripts (a few seconds, no chroot). Its key holds package names, not versions: newer packages come in
 * when the recipe's revision changes or the image cache is removed.
 */
export function debianLayer(recipe: DebianRoot): Layer {
  return {
    name: recipe.name,
    key: async () =>
      contentHash([
        "debian",
        recipe.revision,
        ...recipe.packages,
        String(recipe.without),
        (await release()).trim(),
        ...(recipe.suite === undefined ? [] : [recipe.suite]),
        ...(recipe.below === undefined ? [] : ["below", ...recipe.below]),
        ...(recipe.capabilities === undefined ? [] : [JSON.stringify(recipe.capabilities)]),
      ]),
    write: async (tar, scratch) => {
      const root = join(scratch, ROOT);
      const debs = join(scratch, ARCHIVES);
      await download(recipe, debs);
      await unpack(root, debs);
      for (const folder of unneeded) {
        await rm(join(root, folder), { recursive: true, force: true });
      }
      await recipe.finish?.(root, scratch);
      if (recipe.capabilities === undefined) {
        return packTar(root, tar);
      }
      for (const [path, capabilities] of Object.entries(recipe.capabilities)) {
        await chmod(join(root, path), 0o755);
        await run("setcap", [capabilities, join(root, path)]);
      }
      await packTarWithCapabilities(root, tar);
    },
    packages: async (scratch, root = join(scratch, ROOT)) => {
      const debs = join(scratch, ARCHIVES);
      if (!existsSync(debs)) {
        await download(recipe, debs);
      }
      return packagesIn(root, debs, (path) => unneeded.includes(path));
    },
  };
}

/** Release and architecture, as in `bookworm amd64`. */
async function release(): Promise<string> {
  const codename = await run("sh", ["-c", '. /etc/os-release; echo "$VERSION_CODENAME"']);
  return `${codename.trim()} ${await run("dpkg", ["--print-architecture"])}`;
}

/** Puts the archives of a recipe's packages into a folder. */
async function download(recipe: DebianRoot, debs: string): Promise<void> {
  await mkdir(debs, { recursive: true });
  const apt = recipe.suite === undefined ? await aptOfMachine(debs) : await aptOfSuite(recipe.suite);
  const below = new Set(recipe.below ? await apt.closure(recipe.below) : []);
  const wanted = (await apt.closure(recipe.packages)).filter(
    (name) => !below.has(name) && !recipe.without?.test(name),
  );
  await apt.download(wanted, debs);
}

async function unpack(root: string, debs: string): Promise<void> {
  for (const folder of ["bin", "sbin", "lib", "lib64"]) {
    await mkdir(join(root, "usr", folder), { recursive: true });
    await symlink(`usr/${folder}`, join(root, folder));
  }
  for (const file of await listArchives(debs)) {
    // Packages of a release before the merged /usr also carry /lib and /bin, which are links here.
    const script = 'set -o pipefail; dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink -C "$2"';
    await run("bash", ["-c", script, "unpack", file, root]);
  }
}

/** The users and name service files that a root without installation scripts lacks. */
export function accounts(user: string, uid: number, home: string): Record<string, string> {
  return {
    "etc/passwd": `root:x:0:0:root:/root:/sbin/nologin\n${user}:x:${uid}:${uid}::${home}:/sbin/nologin\n`,
    "etc/group": `root:x:0:\n${user}:x:${uid}:\n`,
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
  };
}
