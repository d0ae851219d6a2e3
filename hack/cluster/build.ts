import { type BinaryName, binaries, ensureBinary } from "./binaries.ts";

// node hack/cluster/build.ts NAME...: builds what of it is missing, and prints the paths.
for (const name of process.argv.slice(2)) {
  if (!(name in binaries)) {
    console.error(`unknown binary ${name}; known: ${Object.keys(binaries).join(", ")}`);
    process.exit(2);
  }
  console.log(await ensureBinary(name as BinaryName));
}
