/** Archives in a folder of this machine. */

import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { link, mkdir, open, readdir, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ArchiveStorage, StoredFile } from "./storage.ts";

/** @param folder is made when something is written */
export function directoryStorage(folder: string): ArchiveStorage {
  return {
    place: folder,
    async list() {
      const entries = await readdir(folder, { withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
      return Promise.all(
        files.map(
          async (name): Promise<StoredFile> => ({
            name,
            size: (await stat(join(folder, name))).size,
          }),
        ),
      );
    },
    async write(name, bytes) {
      await mkdir(folder, { recursive: true });
      const file = join(folder, name);
      const partial = `${file}.${randomUUID()}.partial`;
      const handle = await open(partial, "wx", 0o600);
      try {
        await pipeline(Readable.from(bytes), handle.createWriteStream({ flush: true }));
        await link(partial, file);
        return (await stat(file)).size;
      } finally {
        await handle.close().catch(() => undefined);
        await unlink(partial);
      }
    },
    read: (name) => createReadStream(join(folder, name)),
    delete: (name) => unlink(join(folder, name)),
    // They cost no more than a person sees in the folder.
    removeUnfinished: async () => {},
  };
}
