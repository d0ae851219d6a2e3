import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { images } from "../images/index.ts";
import { type InsideProcess, inside } from "../images/inside.ts";
import { freePorts } from "../lib/ports.ts";
import { waitFor } from "../lib/wait.ts";

export interface TestValkey {
  /** Connection URL with the password. */
  url: string;
  /** Port on 127.0.0.1. */
  port: number;
  /** Ends the server as a crash would (SIGKILL); it keeps no data. */
  crash: () => Promise<void>;
  /** Starts it again on the same port, empty. */
  restart: () => Promise<void>;
  stop: () => Promise<void>;
}

/**
 * Starts the stack's own Valkey image on a random port of 127.0.0.1, with a password and without persistence. Builds the
 * image where it is not in the cache; needs root.
 */
export async function startValkey(): Promise<TestValkey> {
  const image = images.find(({ name }) => name === "valkey");
  if (!image) throw new Error("there is no image of Valkey");
  const opened = await inside(await image.build());
  const folder = await mkdtemp(join(tmpdir(), "slipway-valkey-"));
  await chmod(folder, 0o755);
  const password = "a-password";
  await writeFile(join(folder, "auth.conf"), `requirepass ${password}\n`);
  const [port = 0] = await freePorts(1);
  let running: InsideProcess | undefined;

  const start = async (): Promise<void> => {
    const settings = ["--bind", "127.0.0.1", "--port", String(port), "--save", "", "--dir", "/tmp"];
    running = opened.run(["/usr/bin/valkey-server", "/media/auth.conf", ...settings], {
      uid: 999,
      mounts: { media: folder },
    });
    await waitFor("Valkey", 10_000, () => accepts(port));
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
  return { url: `valkey://:${password}@127.0.0.1:${port}`, port, crash, restart: start, stop };
}

function accepts(port: number): Promise<true> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", reject);
  });
}
