/** Files in folders that the client's own steps can reach too, while they are read: no link leads out, nothing hangs. */

import { constants } from "node:fs";
import { type FileHandle, open, readlink } from "node:fs/promises";

/** What stands at a path is no regular file, or is not really there. */
export class NotPlain extends Error {
  override name = "NotPlain";
}

/**
 * Opens a regular file that lies at this very path, whatever anybody does to the folders meanwhile: what was opened is judged,
 * not the path. All that is read of it comes from the handle.
 * @param path absolute, without a link in it
 * @throws NotPlain, or the error of the file system
 */
export async function openPlain(path: string): Promise<FileHandle> {
  // A named pipe would be waited for.
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const [found, at] = await Promise.all([file.stat(), readlink(`/proc/self/fd/${file.fd}`)]);
    if (!found.isFile() || at !== path) {
      throw new NotPlain(path);
    }
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** The whole of a small file. @throws NotPlain also when it is larger */
export async function readPlain(path: string, maxBytes: number): Promise<Buffer> {
  const file = await openPlain(path);
  try {
    const room = Buffer.alloc(maxBytes + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(room, length, room.length - length, length);
      length += bytesRead;
      if (length > maxBytes) {
        throw new NotPlain(path);
      }
      if (bytesRead === 0) {
        return room.subarray(0, length);
      }
    }
  } finally {
    await file.close();
  }
}
