import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { forEachConcurrently } from "../lib/concurrently.ts";
import { run } from "../lib/exec.ts";
import { createWhole } from "../lib/files.ts";
import { contentHash, normalizeGoMod } from "../lib/hash.ts";
import { binaryCache, logDir, root } from "../lib/paths.ts";
import { say, seconds } from "../lib/steps.ts";
import { copyFromModule, moduleEnvironment, moduleFolder, withReplacedFile } from "./go-modules.ts";
import { type Binary, type BinaryName, binaries } from "./programs.ts";

const clusterDir = join(root, "hack/cluster");
const linkerFlags = "-s -w";
/**
 * How programs and Go tests are compiled: with other flags, all that they share would be compiled a second time. Without debugging
 * data, which the linker removes from programs anyway and which is a tenth of the compiler's work.
 */
export const compileFlags = ["-trimpath", "-gcflags=all=-dwarf=false"];

/**
 * Where a binary is or will be: its folder is named by the hash of everything that it is built from, so
 * that checkouts share it and a changed pin or source makes another.
 */
export function binaryPath(name: BinaryName): string {
  const binary: Binary = binaries[name];
  const module = join(clusterDir, binary.module);
  const parts = [
    name,
    process.arch,
    binary.package,
    `${compileFlags.join(" ")} ${linkerFlags} ${binary.ldflags ?? ""}`,
    normalizeGoMod(readFileSync(join(module, "go.mod"), "utf8")),
    readFileSync(join(module, "go.sum")),
  ];
  if (binary.tags) {
    parts.push(`tags ${binary.tags}`);
  }
  if (binary.replaced) {
    parts.push(JSON.stringify(binary.replaced), readFileSync(join(module, binary.replaced.by)));
  }
  if (binary.sources) {
    const dir = join(module, binary.sources);
    const files = readdirSync(dir, { recursive: true, encoding: "utf8" }).filter(
      (file) => file.endsWith(".go") && !file.endsWith("_test.go"),
    );
    for (const file of files.sort()) {
      parts.push(file, readFileSync(join(dir, file)));
    }
  }
  return join(binaryCache, contentHash(parts), name);
}

/** Where a file that comes with a binary is or will be. */
export const binaryFile = (name: BinaryName, file: string): string => join(binaryPath(name), "..", file);

/** Those of `names` that are not there yet with all their files. */
export function missingBinaries(names: BinaryName[]): BinaryName[] {
  return names.filter((name) => !existsSync(binaryPath(name)) || missingFiles(name).length > 0);
}

const filesOf = (name: BinaryName): Binary["files"] => (binaries[name] as Binary).files;

function missingFiles(name: BinaryName): [string, string][] {
  return Object.entries(filesOf(name)?.paths ?? {}).filter(([file]) => !existsSync(binaryFile(name, file)));
}

/**
 * Builds a binary unless the cache has it, and returns its path; the files that come with it are beside it then.
 * Statically linked, those with parts in C apart. Two processes that want the same one concurrently build it once: the second
 * waits for the first.
 * @throws CommandError that names the build's log
 */
export async function ensureBinary(name: BinaryName): Promise<string> {
  const path = await ensureBuilt(name);
  await ensureFiles(name);
  return path;
}

/** Builds at once: one alone leaves a quarter of two processors idle while it downloads and links. */
const concurrentBuilds = 2;

/**
 * Builds those of `names` that the cache lacks, two side by side, the longest first.
 * @returns their paths, in the order of `names`
 * @throws CommandError that names the build's log
 */
export async function ensureBinaries(names: readonly BinaryName[]): Promise<string[]> {
  const longestFirst = names.toSorted((a, b) => binaries[b].cold - binaries[a].cold);
  await forEachConcurrently(longestFirst, concurrentBuilds, ensureBinary);
  return names.map(binaryPath);
}

/** Copies what a binary comes with out of its module, whose content go.sum vouches for. */
async function ensureFiles(name: BinaryName): Promise<void> {
  const missing = missingFiles(name);
  const module = filesOf(name)?.module;
  if (missing.length === 0 || module === undefined) {
    return;
  }
  const source = await moduleFolder(join(clusterDir, binaries[name].module), module);
  for (const [file, from] of missing) {
    await createWhole(binaryFile(name, file), (draft) => copyFromModule(join(source, from), draft));
  }
}

async function ensureBuilt(name: BinaryName): Promise<string> {
  const path = binaryPath(name);
  if (existsSync(path)) {
    return path;
  }
  const binary: Binary = binaries[name];
  const dir = join(path, "..");
  const temporary = `${path}.${process.pid}.tmp`;
  await mkdir(dir, { recursive: true });
  await mkdir(logDir, { recursive: true });
  say(`building ${name} (about ${binary.cold} s from nothing)`);
  const start = performance.now();
  const cwd = join(clusterDir, binary.module);
  const replacing = `${path}.${process.pid}.modules`;
  let modules = "-mod=readonly";
  if (binary.replaced) {
    await mkdir(replacing);
    modules = await withReplacedFile(cwd, binary.replaced, replacing);
  }
  const build = `[ -e "$1" ] || nice go build ${compileFlags.join(" ")} -buildvcs=false -tags "$5" -ldflags "$3" -o "$2" "$6" "$4"`;
  const args = [
    path,
    temporary,
    `${linkerFlags} ${binary.ldflags ?? ""}`.trim(),
    binary.package,
    binary.tags ?? "",
    modules,
  ];
  await run("flock", [join(dir, ".lock"), "sh", "-c", build, "build", ...args], {
    cwd,
    env: {
      // Compilers live for seconds: below the limit, collecting garbage is time lost.
      GOGC: "off",
      GOMEMLIMIT: "2GiB",
      ...moduleEnvironment,
      GOOS: "linux",
      CGO_ENABLED: binary.cgo ? "1" : "0",
    },
    log: join(logDir, `build-${name}.log`),
  }).finally(() => rm(replacing, { recursive: true, force: true }));
  if (existsSync(temporary)) {
    if (existsSync(path)) {
      await rm(temporary);
    } else {
      await rename(temporary, path);
    }
  }
  say(`${name} built in ${seconds(performance.now() - start)}`);
  return path;
}
