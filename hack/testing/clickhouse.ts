import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildImage } from "../images/build.ts";
import { clickhouse, clickhouseUser } from "../images/clickhouse.ts";
import { type InsideProcess, inside } from "../images/inside.ts";
import { freePorts } from "../lib/ports.ts";
import { waitFor } from "../lib/wait.ts";

export interface TestClickHouse {
  url: string;
  username: string;
  /** File with the password of `username`. */
  passwordFile: string;
  /** Id of its process. */
  pid: () => Promise<number>;
  /** Ends it as a crash would (SIGKILL); what it acknowledged is kept. */
  crash: () => Promise<void>;
  /** Starts it again on the same port, with the same data. */
  restart: () => Promise<void>;
  /** Ends it, and removes all that it has. */
  stop: () => Promise<void>;
}

const BIN = "/usr/local/bin:/usr/bin:/bin";

/**
 * Starts the stack's own image of ClickHouse on a random port, without TLS, with one user that has a password. Builds the image
 * where it is not in the cache; needs root.
 */
export async function startClickHouse(): Promise<TestClickHouse> {
  const opened = await inside(await buildImage(clickhouse()));
  // As the kubelet mounts it.
  await writeFile(join(opened.root, "etc/hosts"), "127.0.0.1 localhost\n");
  const folder = await mkdtemp(join(tmpdir(), "slipway-clickhouse-"));
  await chmod(folder, 0o755);
  const [port = 0] = await freePorts(1);
  const [username, password] = ["analytics", "a'password"];
  const passwordFile = join(folder, "password");
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  await mkdir(join(folder, "data"));
  await chown(join(folder, "data"), clickhouseUser, clickhouseUser);
  const users = { [username]: { password: { "@from_env": "PASSWORD" } } };
  const config = { http_port: port, path: "/media/data/", users };
  await writeFile(join(folder, "config.yaml"), JSON.stringify(config));
  let running: InsideProcess | undefined;

  const start = async (): Promise<void> => {
    const command = ["/bin/env", "clickhouse-server", "--config-file=/media/config.yaml"];
    const env = { PATH: BIN, PASSWORD: password, LANG: "C.UTF-8", HOME: "/tmp" };
    running = opened.run(command, { uid: clickhouseUser, env, mounts: { media: folder } });
    await waitFor("ClickHouse", 60_000, async () => (await fetch(`http://127.0.0.1:${port}/ping`)).ok);
  };
  const crash = async (): Promise<void> => {
    await running?.stop("SIGKILL");
    running = undefined;
  };
  const stop = async (): Promise<void> => {
    await crash();
    await opened.close();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await start();
  } catch (error) {
    await stop().catch(() => undefined);
    throw error;
  }
  const pid = async (): Promise<number> => {
    if (!running) throw new Error("ClickHouse does not run");
    return running.pid();
  };
  return { pid, url: `http://127.0.0.1:${port}`, username, passwordFile, crash, restart: start, stop };
}
