import { chmod, mkdir, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../../lib/exec.ts";
import { contentHash } from "../../lib/hash.ts";
import type { ImageRecipe, Layer } from "../build.ts";
import { packTar } from "../files.ts";
import { baseConfig, osLayer } from "./os.ts";

/** Releases by the version that projects name. */
const releases = { "1.25": "1.25.14" } as const;

/** Go's own toolchain, for builds alone: what it builds needs none of it. Without a C compiler. */
export function goBase(version: keyof typeof releases): ImageRecipe {
  const path = "/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  return {
    name: "base/go",
    version,
    layers: [osLayer(), toolchain(releases[version])],
    config: baseConfig({ PATH: path, CGO_ENABLED: "0", GOTOOLCHAIN: "local", GOPATH: "/go" }),
  };
}

/** The toolchain as Go's module proxy has it, which Go's checksum database vouches for. */
function toolchain(release: string): Layer {
  const machine = process.arch === "arm64" ? "arm64" : "amd64";
  const module = `golang.org/toolchain@v0.0.1-go${release}.linux-${machine}`;
  return {
    name: "base-go",
    key: async () => contentHash(["base-go", "1", module]),
    write: async (tar, scratch) => {
      const output = await run("go", ["mod", "download", "-json", module], {
        cwd: tmpdir(),
        env: { GOWORK: "off" },
      });
      const { Dir: source } = JSON.parse(output) as { Dir: string };
      const home = join(scratch, "root/usr/local/go");
      await mkdir(join(home, ".."), { recursive: true });
      await run("cp", ["-r", "--no-preserve=all", source, home]);
      // Modules hold no executable files.
      for (const folder of ["bin", `pkg/tool/linux_${machine}`]) {
        for (const name of await readdir(join(home, folder))) {
          await chmod(join(home, folder, name), 0o755);
        }
      }
      await packTar(join(scratch, "root"), tar, ["./usr/local/go/test", "./usr/local/go/api", "*/testdata"]);
    },
  };
}
