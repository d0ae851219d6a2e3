import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BuiltImage } from "../../../hack/images/build.ts";
import { type InsideOptions, type InsideProcess, inside } from "../../../hack/images/inside.ts";
import { waitFor } from "../../../hack/lib/wait.ts";

/** A real server that a test may crash. */
export interface InsideServer {
  /** Id of its process. @throws Error while there is none */
  pid: () => Promise<number>;
  /** Ends it as a crash would (SIGKILL). */
  crash: () => Promise<void>;
  /** Starts it again as it was started before. */
  restart: () => Promise<void>;
  /** Ends it, and removes all that it has. */
  stop: () => Promise<void>;
}

/** How a server is started. */
export interface Launch extends Omit<InsideOptions, "mounts"> {
  command: string[];
  /** Whether it answers; may fail until then. */
  answers: () => Promise<boolean>;
  timeoutMs: number;
}

/**
 * Starts a server in an image's files.
 * @param prepare writes what it reads into the folder that it sees as `/media`
 */
export async function startInside(
  name: string,
  image: BuiltImage,
  prepare: (files: { folder: string; root: string }) => Promise<Launch>,
): Promise<InsideServer> {
  const opened = await inside(image);
  const folder = await mkdtemp(join(tmpdir(), `slipway-${name.toLowerCase()}-`));
  let running: InsideProcess | undefined;
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
    await chmod(folder, 0o755);
    const { command, answers, timeoutMs, ...options } = await prepare({ folder, root: opened.root });
    const restart = async (): Promise<void> => {
      running = opened.run(command, { ...options, mounts: { media: folder } });
      await waitFor(name, timeoutMs, answers);
    };
    const pid = async (): Promise<number> => {
      if (!running) {
        throw new Error(`${name} does not run`);
      }
      return running.pid();
    };
    await restart();
    return { pid, crash, restart, stop };
  } catch (error) {
    await stop().catch(() => undefined);
    throw error;
  }
}
