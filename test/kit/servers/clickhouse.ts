import { chown, copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildImage } from "../../../hack/images/build.ts";
import { clickhouse, clickhouseUser } from "../../../hack/images/clickhouse.ts";
import { root as repository } from "../../../hack/lib/paths.ts";
import { freePorts } from "../../../hack/lib/ports.ts";
import { type InsideServer, startInside } from "./inside-server.ts";

/** What it acknowledged outlives a crash. */
export interface TestClickHouse extends InsideServer {
  url: string;
  username: string;
  /** File with the password of `username`. */
  passwordFile: string;
  /** Folder with its data. */
  data: string;
}

const BIN = "/usr/local/bin:/usr/bin:/bin";

/**
 * Starts the stack's own image of ClickHouse as the chart does, on a random port, without TLS, with one user that has a password. Builds the image
 * where it is not in the cache; needs root.
 */
export async function startClickHouse(): Promise<TestClickHouse> {
  const [port = 0] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const [username, password] = ["analytics", "a'password"];
  let passwordFile = "";
  let data = "";
  const server = await startInside("ClickHouse", await buildImage(clickhouse()), async ({ folder, root }) => {
    // As the kubelet mounts it.
    await writeFile(join(root, "etc/hosts"), "127.0.0.1 localhost\n");
    passwordFile = join(folder, "password");
    await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
    data = join(folder, "data");
    await mkdir(data);
    await chown(data, clickhouseUser, clickhouseUser);
    const users = { [username]: { password: { "@from_env": "PASSWORD" } } };
    const config = { http_port: port, path: "/media/data/", users };
    await writeFile(join(folder, "config.yaml"), JSON.stringify(config));
    await copyFile(join(repository, "charts/slipway/files/analytics/start.sh"), join(folder, "start.sh"));
    return {
      command: [
        "/bin/sh",
        "/media/start.sh",
        "/media/data",
        "clickhouse-server",
        "--config-file=/media/config.yaml",
      ],
      uid: clickhouseUser,
      env: { PATH: BIN, PASSWORD: password, LANG: "C.UTF-8", HOME: "/tmp" },
      answers: async () => (await fetch(`${url}/ping`)).ok,
      timeoutMs: 180_000,
    };
  });
  return { ...server, url, username, passwordFile, data };
}
