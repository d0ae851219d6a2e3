import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { compileFlags } from "../../cluster/binaries.ts";
import { run } from "../../lib/exec.ts";
import { contentHash } from "../../lib/hash.ts";
import { root } from "../../lib/paths.ts";
import type { ImageRecipe, Layer } from "../build.ts";
import { hashFiles, listFiles, packTar } from "../files.ts";
import { baseConfig, osLayer } from "./os.ts";

const source = join(root, "hack/images/base/static");

/** A small web server for the files in /srv, on `$PORT`. */
export function staticBase(): ImageRecipe {
  return {
    name: "base/static",
    version: "1",
    layers: [osLayer(), staticServer()],
    config: { ...baseConfig({}, ["/usr/local/bin/static-server", "/srv"]), workdir: "/srv", ports: [8080] },
  };
}

function staticServer(): Layer {
  return {
    name: "base-static",
    key: async () =>
      contentHash([
        "base-static",
        compileFlags.join(" "),
        await hashFiles(source, await listFiles(source, (path) => !path.endsWith("_test.go"))),
      ]),
    write: async (tar, scratch) => {
      const bin = join(scratch, "root/usr/local/bin");
      await mkdir(bin, { recursive: true });
      const env = { CGO_ENABLED: "0", GOOS: "linux", GOFLAGS: undefined, GOWORK: "off" };
      const flags = [...compileFlags, "-ldflags", "-s -w", "-o", join(bin, "static-server")];
      await run("go", ["build", ...flags, "."], { cwd: source, env });
      await packTar(join(scratch, "root"), tar);
    },
  };
}
