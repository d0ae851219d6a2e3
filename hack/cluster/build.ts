import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { aptPackages } from "../images/index.ts";
import { logDir } from "../lib/paths.ts";
import { type BinaryName, binaries, ensureBinary } from "./binaries.ts";
import { buildsPackages } from "./builds/index.ts";
import { clusterPackages, ensurePackages } from "./packages.ts";

// node hack/cluster/build.ts [NAME...]: builds what of it is missing, and prints the paths. Without a name all there are, with the
// Debian packages that the embedded cluster, and tests of its parts, run on.
const names = process.argv.slice(2);
if (names.length === 0) {
  await mkdir(logDir, { recursive: true });
  // Before the first program: Gitea needs a C compiler.
  const packages = [...clusterPackages, ...aptPackages, ...buildsPackages];
  await ensurePackages(packages, join(logDir, "packages.log"));
}
for (const name of names.length > 0 ? names : Object.keys(binaries)) {
  if (!(name in binaries)) {
    console.error(`unknown binary ${name}; known: ${Object.keys(binaries).join(", ")}`);
    process.exit(2);
  }
  console.log(await ensureBinary(name as BinaryName));
}
