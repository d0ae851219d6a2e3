/** Reads regular files in folders that the client's steps can change meanwhile: no link is followed, no read blocks. */

import { constants } from "node:fs";
import { type FileHandle, open, readlink } from "node:fs/promises";

/** The path is not that of a regular file, or contains a link. */
export class NotRegularFileError extends Error {
  override name = "NotRegularFileError";
}

/**
 * Opens a regular file at exactly this path, whatever happens to the folders meanwhile: the open file is checked, not the
 * path. Reads must use the handle.
 * @param path absolute, without links
 * @throws NotRegularFileError, or the error of the file system
 */
export async function openRegularFile(path: string): Promise<FileHandle> {
  // Opening a named pipe would block.
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const [found, at] = await Promise.all([file.stat(), readlink(`/proc/self/fd/${file.fd}`)]);
    if (!found.isFile() || at !== path) {
      throw new NotRegularFileError(path);
    }
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Reads a whole small file. @throws NotRegularFileError also when it is larger */
export async function readRegularFile(path: string, maxBytes: number): Promise<Buffer> {
  const file = await openRegularFile(path);
  try {
    const buffer = Buffer.alloc(maxBytes + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
      length += bytesRead;
      if (length > maxBytes) {
        throw new NotRegularFileError(path);
      }
      if (bytesRead === 0) {
        return buffer.subarray(0, length);
      }
    }
  } finally {
    await file.close();
  }
}
