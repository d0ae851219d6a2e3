import { chmod, chown, copyFile, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { contentHash } from "../lib/hash.ts";
import { root } from "../lib/paths.ts";
import type { ImageRecipe, Layer } from "./build.ts";
import { accounts } from "./debian.ts";
import { hashFiles, listFiles, packTar, writeFiles } from "./files.ts";
import { libraries, nodeBinary } from "./node.ts";
import { installNpm } from "./registries.ts";
import { linkBusybox, sourceFile } from "./samples.ts";

/** The user of upstream's image. */
export const clickhouseUser = 101;

const source = join(root, "hack/images/clickhouse");

/** The command of the real image. Queries run on threads of Node's pool: there have to be more of those than of queries. */
const command = '#!/bin/sh\nUV_THREADPOOL_SIZE=80 exec node /app/main.ts "$@"\n';

/** A small ClickHouse: its HTTP interface over chDB, the same engine as a library. See clickhouse/README.md. */
export function clickhouse(): ImageRecipe {
  return {
    name: "slipway/clickhouse",
    version: "26.7",
    layers: [libraries(), nodeBinary(), engine(), server()],
    config: {
      cmd: ["clickhouse-server"],
      env: { PATH: "/usr/local/bin:/usr/bin:/bin", NODE_ENV: "production", LANG: "C.UTF-8" },
      user: `${clickhouseUser}:${clickhouseUser}`,
      workdir: "/app",
      ports: [8123, 8443],
    },
  };
}

/** /app/node_modules: the engine, exactly as the lock file says, and without what only developers of applications need. */
function engine(): Layer {
  const files = () =>
    Promise.all(["package.json", "package-lock.json"].map((name) => sourceFile(`clickhouse/${name}`)));
  return {
    name: "chdb",
    key: async () => contentHash(["chdb", "1", process.arch, ...(await files())]),
    write: async (tar, scratch) => {
      const app = join(scratch, "root/app");
      const [manifest = "", lock = ""] = await files();
      await installNpm(manifest, lock, app);
      for (const name of ["package.json", "package-lock.json"]) {
        await rm(join(app, name));
      }
      await packTar(join(scratch, "root"), tar, ["*.d.ts", "*.d.mts", "*.map", ".package-lock.json"]);
    },
  };
}

/** The server itself, a shell for the platform's probes, and the folders that it writes to. */
function server(): Layer {
  const sources = () =>
    listFiles(
      source,
      (path) => path !== "node_modules" && !/\.(test|integration\.test|d)\.ts$|\.md$|lock\.json$/.test(path),
    );
  const files = accounts("clickhouse", clickhouseUser, "/var/lib/clickhouse");
  return {
    name: "clickhouse",
    key: async () =>
      contentHash([
        "clickhouse",
        "1",
        command,
        JSON.stringify(files),
        await hashFiles(source, await sources()),
      ]),
    write: async (tar, scratch) => {
      const folder = join(scratch, "root");
      for (const path of ["app", "usr/bin", "usr/local/bin", "tmp"]) {
        await mkdir(join(folder, path), { recursive: true });
      }
      for (const path of await sources()) {
        await copyFile(join(source, path), join(folder, "app", path));
      }
      await copyFile("/bin/busybox", join(folder, "usr/bin/busybox"));
      await linkBusybox(folder);
      await writeFiles(folder, files);
      await writeFiles(folder, { "usr/local/bin/clickhouse-server": command }, 0o755);
      await chmod(join(folder, "tmp"), 0o1777);
      for (const path of ["var/lib/clickhouse", "etc/clickhouse-server"]) {
        await mkdir(join(folder, path), { recursive: true });
        await chown(join(folder, path), clickhouseUser, clickhouseUser);
      }
      await packTar(folder, tar);
    },
  };
}
