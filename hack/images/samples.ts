import { mkdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { compileFlags } from "../cluster/binaries.ts";
import { run } from "../lib/exec.ts";
import { contentHash } from "../lib/hash.ts";
import { root } from "../lib/paths.ts";
import type { ImageRecipe, Layer } from "./build.ts";
import { accounts, debianLayer } from "./debian.ts";
import { hashFiles, listFiles, packTar, writeFiles } from "./files.ts";

const anyUser = 65532;
const source = join(root, "hack/images/sample-http");

/** The stack contract's HTTP sample, from an empty image; `version` is what it answers as its `version`. */
export function sampleHttp(version: string): ImageRecipe {
  return {
    name: "slipway/sample-http",
    version,
    layers: [sampleHttpLayer(version)],
    config: { entrypoint: ["/sample-http"], user: `${anyUser}:${anyUser}`, ports: [8080] },
  };
}

function sampleHttpLayer(version: string): Layer {
  return {
    name: "sample-http",
    key: async () => {
      const files = await listFiles(source, (path) => !path.endsWith("_test.go"));
      return contentHash(["sample-http", compileFlags.join(" "), version, await hashFiles(source, files)]);
    },
    write: async (tar, scratch) => {
      const folder = join(scratch, "root");
      await mkdir(folder, { recursive: true });
      const flags = [...compileFlags, "-ldflags", `-s -w -X main.version=${version}`];
      const env = { CGO_ENABLED: "0", GOOS: "linux", GOFLAGS: undefined, GOWORK: "off" };
      await run("go", ["build", ...flags, "-o", join(folder, "sample-http"), "."], { cwd: source, env });
      await packTar(folder, tar);
    },
  };
}

/** The stack contract's job sample: busybox, whose default command prints the date and ends. */
export function sampleJob(): ImageRecipe {
  return {
    name: "slipway/sample-job",
    version: "v1",
    layers: [busyboxLayer("sample-job")],
    config: { cmd: ["/bin/date"], user: `${anyUser}:${anyUser}`, env: { PATH: "/usr/bin:/bin" } },
  };
}

function busyboxLayer(name: string): Layer {
  const files = accounts("app", anyUser, "/tmp");
  return debianLayer({
    name,
    packages: ["busybox-static"],
    revision: contentHash(["1", JSON.stringify(files)]),
    finish: async (folder) => {
      await linkBusybox(folder);
      await writeFiles(folder, files);
      await mkdir(join(folder, "tmp"));
      await run("chmod", ["1777", join(folder, "tmp")]);
    },
  });
}

/** Links every applet of an unpacked busybox into /usr/bin, where the package leaves only `busybox` itself. */
export async function linkBusybox(folder: string): Promise<void> {
  const applets = await run(join(folder, "usr/bin/busybox"), ["--list"]);
  for (const applet of applets.split("\n").filter((line) => line !== "" && line !== "busybox")) {
    await symlink("busybox", join(folder, "usr/bin", applet)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") {
        throw error;
      }
    });
  }
}

/** Reads a file of this folder; its text is part of a layer's key. */
export function sourceFile(path: string): Promise<string> {
  return readFile(join(root, "hack/images", path), "utf8");
}
