import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { aptPackages } from "../images/index.ts";
import { logDir } from "../lib/paths.ts";
import { ensureBinaries } from "./binaries.ts";
import { buildsPackages } from "./builds/index.ts";
import { clusterPackages, ensurePackages } from "./packages.ts";
import { type BinaryName, binaries } from "./programs.ts";

// node hack/cluster/build.ts [NAME...]: builds what of it is missing, and prints the paths. Without a name all there are, with the
// Debian packages that the embedded cluster, and tests of its parts, run on.
const names = process.argv.slice(2);
const isKnown = (name: string): name is BinaryName => name in binaries;
const unknown = names.filter((name) => !isKnown(name));
if (unknown.length > 0) {
  console.error(`unknown binary ${unknown.join(", ")}; known: ${Object.keys(binaries).join(", ")}`);
  process.exit(2);
}
if (names.length === 0) {
  await mkdir(logDir, { recursive: true });
  // Before the first program: Gitea needs a C compiler.
  const packages = [...clusterPackages, ...aptPackages, ...buildsPackages];
  await ensurePackages(packages, join(logDir, "packages.log"));
}
const wanted = names.length > 0 ? names.filter(isKnown) : (Object.keys(binaries) as BinaryName[]);
console.log((await ensureBinaries(wanted)).join("\n"));
