/** Backups in files of a volume. A file that has its name is whole: it is written under another one before. */

import { mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Readable } from "node:stream";
import type { Sink } from "./sink.ts";

/** Ends the names of files that are being written. */
const PART = ".part";

/**
 * Writes a file. What an earlier try has left is removed first.
 * @param path where it is to be
 */
export async function openFile(path: string): Promise<Sink> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true });
  await removeTries(path);
  const part = `${path}.${process.pid}-${Date.now()}${PART}`;
  const file = await open(part, "wx", 0o660);
  return {
    async take(stream: Readable) {
      await file.writeFile(stream);
      await file.sync();
      await file.close();
      return {};
    },
    async commit() {
      await rename(part, path);
      const parent = await open(folder, "r");
      await parent.sync();
      await parent.close();
    },
    async abort() {
      await file.close().catch(() => undefined);
      await rm(part, { force: true });
    },
  };
}

/** @throws when there is none */
export async function readFileStream(path: string): Promise<Readable> {
  const file = await open(path, "r");
  return file.createReadStream({ highWaterMark: 1 << 20 });
}

/** Removes a file and what tries to write it have left. */
export async function eraseFile(path: string): Promise<void> {
  await rm(path, { force: true });
  await removeTries(path);
}

async function removeTries(path: string): Promise<void> {
  const names = await readdir(dirname(path)).catch(() => []);
  const tries = names.filter((name) => name.startsWith(`${basename(path)}.`) && name.endsWith(PART));
  for (const name of tries) {
    await rm(join(dirname(path), name), { force: true });
  }
}
