import { chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../lib/exec.ts";
import { contentHash } from "../lib/hash.ts";
import type { Layer } from "./build.ts";
import { packTar } from "./files.ts";
import { inside } from "./inside.ts";
import { COMPILE_CACHE } from "./processes.ts";

/**
 * A layer with the compile cache of a program of the layers below, which is run for it. Node keeps a cache for each user.
 * @param runs arguments of `node`, one call after the other; each may end as it likes
 */
export function compileCacheLayer(user: number, workdir: string, runs: readonly string[][]): Layer {
  return {
    name: "compile-cache",
    key: async () => contentHash(["compile-cache", "2", String(user), workdir, JSON.stringify(runs)]),
    write: async (tar, scratch, below) => {
      const root = join(scratch, "root");
      const folder = join(root, COMPILE_CACHE);
      await mkdir(folder, { recursive: true });
      await chown(folder, user, user);
      const image = await inside({ reference: below });
      try {
        for (const args of runs) {
          const command = ["/bin/sh", "-c", 'cd "$0" && exec node "$@"', workdir, ...args];
          const { exited } = image.run(command, {
            uid: user,
            env: { PATH: "/usr/local/bin:/usr/bin:/bin", NODE_COMPILE_CACHE: COMPILE_CACHE },
            mounts: { [COMPILE_CACHE]: folder },
          });
          await exited;
        }
      } finally {
        await image.close();
      }
      await run("chown", ["-R", "0:0", root]);
      // Node keeps its cache for itself.
      await run("chmod", ["-R", "a+rX", root]);
      await packTar(root, tar);
    },
  };
}
