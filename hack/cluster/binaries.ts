import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { forEachConcurrently } from "../lib/concurrently.ts";
import { run } from "../lib/exec.ts";
import { contentHash, normalizeGoMod } from "../lib/hash.ts";
import { binaryCache, logDir, root } from "../lib/paths.ts";
import { say, seconds } from "../lib/steps.ts";

/** Version of Kubernetes that the embedded cluster runs; the same as in go.mod. */
export const kubernetesVersion = "v1.34.4";

interface Binary {
  /** Folder of its go.mod under hack/cluster. */
  module: string;
  /** Package to build, as `go build` takes it. */
  package: string;
  /** Folder of own sources, where there are any. */
  sources?: string;
  ldflags?: string;
  /** Build tags, comma-separated. */
  tags?: string;
  /** Whether parts of it are C: needs gcc, and links to this machine's C library. */
  cgo?: true;
  /** Files or folders of its Go module that are kept beside the binary: where the module has them, by the name they get. */
  files?: { module: string; paths: Record<string, string> };
  /** Seconds that a cold build took on 2 cores, to say how long it may take. */
  cold: number;
}

const versionFlags = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"]
  .flatMap((path) => [
    `-X ${path}.gitVersion=${kubernetesVersion}`,
    `-X ${path}.gitMajor=${kubernetesVersion.slice(1).split(".")[0]}`,
    `-X ${path}.gitMinor=${kubernetesVersion.split(".")[1]}`,
    `-X ${path}.gitTreeState=clean`,
  ])
  .join(" ");

/** The same as in its go.mod; its API reports it. */
const giteaVersion = "1.26.0";
const buildkitFlags = "-X github.com/moby/buildkit/version.Version=v0.31.2";

/** Every Go program of the embedded cluster, by name. */
export const binaries = {
  kubernetes: {
    module: ".",
    package: "./kubernetes",
    sources: "kubernetes",
    ldflags: versionFlags,
    cold: 290,
  },
  netpol: { module: ".", package: "./netpol", sources: "netpol", cold: 15 },
  volumes: { module: ".", package: "./volumes", sources: "volumes", cold: 15 },
  pause: { module: ".", package: "./pause", sources: "pause", cold: 2 },
  helm: { module: "helm", package: "helm.sh/helm/v3/cmd/helm", cold: 70 },
  coredns: { module: "coredns", package: "github.com/coredns/coredns", cold: 100 },
  registry: { module: "registry", package: "github.com/distribution/distribution/v3/cmd/registry", cold: 52 },
  "local-path": { module: "local-path", package: "github.com/rancher/local-path-provisioner", cold: 62 },
  "metrics-server": {
    module: "metrics-server",
    package: "sigs.k8s.io/metrics-server/cmd/metrics-server",
    cold: 110,
  },
  traefik: {
    module: "traefik",
    package: "github.com/traefik/traefik/v3/cmd/traefik",
    files: {
      module: "github.com/traefik/traefik/v3",
      paths: {
        "definitions.yaml": "docs/content/reference/dynamic-configuration/kubernetes-crd-definition-v1.yml",
      },
    },
    cold: 295,
  },
  gitea: {
    module: "gitea",
    package: "code.gitea.io/gitea",
    ldflags: `-X main.Version=${giteaVersion}`,
    tags: "sqlite,sqlite_unlock_notify",
    cgo: true,
    // What it reads at run time: pages, texts, templates of licenses and the like.
    files: {
      module: "code.gitea.io/gitea",
      paths: { templates: "templates", options: "options", public: "public" },
    },
    cold: 220,
  },
  buildkitd: {
    module: "buildkit",
    package: "github.com/moby/buildkit/cmd/buildkitd",
    ldflags: buildkitFlags,
    cold: 60,
  },
  buildctl: {
    module: "buildkit",
    package: "github.com/moby/buildkit/cmd/buildctl",
    ldflags: buildkitFlags,
    cold: 10,
  },
  rootlesskit: {
    module: "rootlesskit",
    package: "github.com/rootless-containers/rootlesskit/v3/cmd/rootlesskit",
    cold: 10,
  },
  crane: { module: "crane", package: "github.com/google/go-containerregistry/cmd/crane", cold: 15 },
  kind: { module: "kind", package: "sigs.k8s.io/kind", cold: 4 },
  kwok: { module: "kwok", package: "sigs.k8s.io/kwok/cmd/kwok", cold: 63 },
  versitygw: { module: "s3", package: "github.com/versity/versitygw/cmd/versitygw", cold: 70 },
} satisfies Record<string, Binary>;

export type BinaryName = keyof typeof binaries;

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
  const output = await run("go", ["mod", "download", "-json", module], {
    cwd: join(clusterDir, binaries[name].module),
    env: { GOTOOLCHAIN: "auto", GOFLAGS: "-mod=readonly" },
  });
  const { Dir: source } = JSON.parse(output) as { Dir: string };
  for (const [file, from] of missing) {
    await copyInto(join(source, from), binaryFile(name, file));
  }
}

/** A file or folder as a whole, or not at all. The module's own are read-only, which would stay with the copies. */
async function copyInto(from: string, to: string): Promise<void> {
  const temporary = `${to}.${process.pid}.tmp`;
  await run("cp", ["-r", "--no-preserve=all", from, temporary]);
  await rename(temporary, to).catch((error: NodeJS.ErrnoException) => {
    // Another process has put the same folder there meanwhile.
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") {
      throw error;
    }
    return rm(temporary, { recursive: true });
  });
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
  const build = `[ -e "$1" ] || nice go build ${compileFlags.join(" ")} -buildvcs=false -tags "$5" -ldflags "$3" -o "$2" "$4"`;
  const args = [
    path,
    temporary,
    `${linkerFlags} ${binary.ldflags ?? ""}`.trim(),
    binary.package,
    binary.tags ?? "",
  ];
  await run("flock", [join(dir, ".lock"), "sh", "-c", build, "build", ...args], {
    cwd: join(clusterDir, binary.module),
    // A Go older than a pinned module requires fetches the newer toolchain as a module.
    env: {
      // Compilers live for seconds: one that collects garbage only at its limit takes a sixth less processor time.
      GOGC: "off",
      GOMEMLIMIT: "2GiB",
      GOTOOLCHAIN: "auto",
      GOFLAGS: "-mod=readonly",
      GOOS: "linux",
      CGO_ENABLED: binary.cgo ? "1" : "0",
    },
    log: join(logDir, `build-${name}.log`),
  });
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
